"""One module, from its file to its report; whatever goes wrong with it is said there."""

from dataclasses import replace

from hlo_lower.api.many.files import Selected
from hlo_lower.base.contained.status_board import mark_contained
from hlo_lower.base.errors import EXIT_BAD_INPUT, HloLowerError
from hlo_lower.facts.scatter.record import Fact, ScatterRecord
from hlo_lower.lowering.options import Options
from hlo_lower.report.module import ModuleReport

WARM_UP = b"func.func public @main() { return }"


def classify_one(options: Options, with_texts: bool, module: Selected) -> ModuleReport:
    """Read a module and classify its scatters; an error becomes the report's, none is raised.

    The evidence is looked up at once: the report holds nothing of the module, and can go to another process.
    """
    try:
        if module.error is not None:
            raise module.error
        return _classify_file(options, with_texts, module)
    except HloLowerError as error:
        return failure_report(options, module, str(error))
    except Exception as error:
        return failure_report(options, module, internal(module.file, error))


def failure_report(options: Options, module: Selected, error: str) -> ModuleReport:
    """The report of a module that could not be read or processed."""
    target, oob = options.target.name, options.oob
    return ModuleReport(module.file, target=target, oob=oob, error=error, exit_code=EXIT_BAD_INPUT, group=module.group)


def internal(file: str, error: BaseException) -> str:
    """The message of an error that is not the user's."""
    told = (str(error).splitlines() or [""])[0]
    return (
        f"{file}: internal error: {type(error).__name__}: {told}\n"
        f"  next:    this is a mistake in hlo-lower: please report it with hlo-lower report --debug {file}"
    )


def warm_up(options: Options) -> None:
    """Make a process ready that may die of a module: import and build what is needed before the first one comes."""
    mark_contained()
    classify_one(options, False, Selected("", "", WARM_UP))


def _classify_file(options: Options, with_texts: bool, module: Selected) -> ModuleReport:
    from hlo_lower.api.many.survey import surveyed_report
    from hlo_lower.ir.reader import read  # which imports JAX: a process that only shows reports need not wait for it

    report = surveyed_report(read(module.source, module.file), module.file, options, with_texts=with_texts)
    return replace(report, records=tuple(map(detach_record, report.records)), group=module.group)


def detach_record(record: ScatterRecord) -> ScatterRecord:
    """A record that holds its evidence and refers to nothing of its module."""
    facts = (Fact.known(fact.name, fact.value, *fact.evidence) for fact in record.facts)
    return replace(record, facts=tuple(facts))
