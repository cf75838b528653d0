"""What `hlo_lower.testing` gives to other projects: scatters, arguments, and what they give by the definition."""

import numpy as np

from hlo_lower.testing import arguments_of, case_of_seed, module_text, reference
from hlo_lower.testing.fuzz.case import ARGUMENT_SETS
from hlo_lower.verify.run import Executable


def test_the_example_of_the_docstring():
    """A case's module, run by XLA, gives what the reference says, with each of its sets of arguments."""
    case = case_of_seed(17)
    compiled = Executable(module_text([case]), "exact")
    for number in range(ARGUMENT_SETS):
        arguments = arguments_of(case, number)
        expected = reference(case, arguments, "xla")
        for result, wanted in zip(compiled.run(arguments.all), expected, strict=True):
            np.testing.assert_array_equal(result, wanted)
