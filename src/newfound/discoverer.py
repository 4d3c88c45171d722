"""CategoryDiscoverer: the library's front door, an estimator of scikit-learn."""

from typing import Any

from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import estimator_html_repr

from newfound import notebook
from newfound.discovery import Discovery


class CategoryDiscoverer(Discovery, ClusterMixin, BaseEstimator):
    __doc__ = Discovery.__doc__

    def _repr_html_(self) -> str:
        if not hasattr(self, "fitted_"):
            return str(estimator_html_repr(self))
        return notebook.categories_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        # scikit-learn's would show the parameters, and goes before _repr_html_.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
