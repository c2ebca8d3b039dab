"""A backend of `torch.distributed` that runs canopy's plans.

import canopy_torch                                   # not needed from torch 2.14 on
torch.distributed.init_process_group("canopy")        # with CANOPY_PLAN_DIR set to a folder of plans
"""

from canopy_torch.agreement import AgreementError
from canopy_torch.backend import register
from canopy_torch.statistics import report

__all__ = ["AgreementError", "register", "report"]

register()
