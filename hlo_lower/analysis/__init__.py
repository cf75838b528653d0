"""What can be known without running: value ranges of index tensors, and what a scatter's region computes."""

from hlo_lower.analysis.evidence import Evidence
from hlo_lower.analysis.index_facts import IndexAnalysis
from hlo_lower.analysis.interval import Interval
from hlo_lower.analysis.region import Combiner, RegionFacts, classify_region

__all__ = ["Combiner", "Evidence", "IndexAnalysis", "Interval", "RegionFacts", "classify_region"]
