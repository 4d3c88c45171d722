"""Result lines, and the code that renders tables and figures from them."""
