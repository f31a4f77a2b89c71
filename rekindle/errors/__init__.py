"""Source locations and diagnostics."""

from rekindle.errors.archives import (
    ArchiveError as ArchiveError,
    ArchiveLimitError as ArchiveLimitError,
    ArchiveWarning as ArchiveWarning,
    CorruptArchiveError as CorruptArchiveError,
    MissingLibraryError as MissingLibraryError,
    SaveError as SaveError,
    UnsafeArchiveError as UnsafeArchiveError,
    UnsupportedArchiveError as UnsupportedArchiveError,
)
from rekindle.errors.causes import (
    Cause as Cause,
    Edit as Edit,
)
from rekindle.errors.diagnostics import (
    Diagnostics as Diagnostics,
    ProgramErrors as ProgramErrors,
)
from rekindle.errors.exceptions import (
    ArgumentError as ArgumentError,
    BatchingError as BatchingError,
    CaptureError as CaptureError,
    CascadingError as CascadingError,
    CompileError as CompileError,
    DifferentiationError as DifferentiationError,
    GraphError as GraphError,
    InternalError as InternalError,
    MissingName as MissingName,
    NotScriptableError as NotScriptableError,
    ParseError as ParseError,
    RekindleError as RekindleError,
    RuleError as RuleError,
    SchemaError as SchemaError,
    TracingError as TracingError,
    TypeMismatchError as TypeMismatchError,
    UndefinedNameError as UndefinedNameError,
    UnknownLibraryClassError as UnknownLibraryClassError,
    UnsupportedError as UnsupportedError,
    VerificationError as VerificationError,
    bug_while as bug_while,
    is_bug as is_bug,
)
from rekindle.errors.exporting import (
    DraftWarning as DraftWarning,
    ExportError as ExportError,
    ExportProblem as ExportProblem,
)
from rekindle.errors.frames import (
    CompilationFrame as CompilationFrame,
    compiling as compiling,
    current_frames as current_frames,
    forget_failures as forget_failures,
    known_failure as known_failure,
    remember_failure as remember_failure,
)
from rekindle.errors.fusion import (
    FusionBlocker as FusionBlocker,
    NotFusedError as NotFusedError,
)
from rekindle.errors.source import (
    LIBRARY as LIBRARY,
    UNKNOWN_RANGE as UNKNOWN_RANGE,
    Source as Source,
    SourceRange as SourceRange,
    TextLimit as TextLimit,
    shared_source as shared_source,
)
