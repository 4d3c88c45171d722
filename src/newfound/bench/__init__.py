"""The paper's benchmark: data sets, protocol, runner, tables and figures."""
