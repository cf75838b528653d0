"""The former name of `hlo_lower.plugin`, for plug-ins that were written with it."""

import warnings

from hlo_lower.plugin import *  # noqa: F403 - every name of it, and no other

warnings.warn("hlo_lower.rule_api is hlo_lower.plugin now", DeprecationWarning, stacklevel=2)
