"""Plans: what to run on a drive, as data (docs/plans.md).

What other parts call::

    plan = load("replay")                     # a built-in name, or the path of a TOML file
    bound = bind(plan, {"recording": "prod.rec"})
    bound.phases                              # for testdrive.job.Job
    judge(bound.rules, summary)               # Verdict
"""

from testdrive.plans.binding import BoundPlan, bind
from testdrive.plans.judgement import Verdict, judge
from testdrive.plans.loading import built_in_names, load, read_text
from testdrive.plans.model import Parameter, Plan, Rule

__all__ = [
    "BoundPlan",
    "Parameter",
    "Plan",
    "Rule",
    "Verdict",
    "bind",
    "built_in_names",
    "judge",
    "load",
    "read_text",
]
