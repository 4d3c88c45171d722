"""New texts join a run, whose categories stay: `update`."""

from newfound.updating.changes import describe_changes
from newfound.updating.updating import planned, update

__all__ = ["describe_changes", "planned", "update"]
