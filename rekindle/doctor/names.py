"""The names of PyTorch's TorchScript, and what each means while the drop-in is installed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Status(Enum):
    """What a name of TorchScript refers to while the drop-in is installed."""

    COMPILES = "compiles"
    """It is replaced by a function or class of rekindle that compiles or loads a program, which may fail."""
    REKINDLE = "rekindle's"
    """It is replaced by a name of rekindle that compiles nothing: a decorator, a class, a function on programs."""
    SAME = "the same to either compiler"
    """It stays PyTorch's, and programs compiled here treat it as ``torch.jit`` does."""
    SWITCH = "a switch of PyTorch's executor"
    """It stays PyTorch's, and has no effect on what rekindle compiles."""
    PYTORCH = "PyTorch's"
    """It stays PyTorch's, and does not know what rekindle compiles."""


@dataclass(frozen=True, slots=True)
class NameInfo:
    """The status of a name of ``torch.jit`` in the drop-in, and a remark if the status does not describe it fully."""

    status: Status
    remark: str = ""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _table(status: Status, names: str, remark: str = "") -> dict[str, NameInfo]:
    return {name: NameInfo(status, remark) for name in names.split()}


JIT: Final[dict[str, NameInfo]] = {
    **_table(Status.COMPILES, "script trace trace_module script_if_tracing load freeze optimize_for_inference"),
    **_table(Status.COMPILES, "CompilationUnit _script_if_tracing run_frozen_optimizations _get_trace_graph"),
    **_table(Status.REKINDLE, "ScriptModule RecursiveScriptModule ScriptFunction Attribute Future Error isinstance"),
    **_table(Status.REKINDLE, "TracerWarning TracingCheckError export ignore unused interface save fork wait _fork"),
    **_table(Status.REKINDLE, "_wait _Await _awaitable _awaitable_nowait _awaitable_wait export_opnames"),
    **_table(Status.REKINDLE, "last_executed_optimized_graph optimized_execution set_fusion_strategy script_method"),
    **_table(Status.SAME, "annotate is_scripting is_tracing Final _unwrap_optional _overload _overload_method"),
    **_table(Status.SAME, "Iterator contextmanager set_module"),
    **_table(Status.SAME, "ScriptWarning", "a class of warnings that rekindle does not give"),
    **_table(Status.SAME, "strict_fusion", "programs run its block without it; rekindle.require_fused checks fusion"),
    **_table(Status.SWITCH, "fuser enable_onednn_fusion onednn_fusion_enabled"),
    **_table(
        Status.PYTORCH,
        "jit_module_from_flatbuffer save_jit_module_to_flatbuffer",
        "the mobile format of PyTorch's own modules, which rekindle neither reads nor writes",
    ),
    **_table(
        Status.PYTORCH,
        "RecursiveScriptClass TracedModule TopLevelTracedModule ONNXTracedModule",
        "a class of PyTorch's own objects: nothing that rekindle compiles is an instance of it",
    ),
}
"""The status of each public name of ``torch.jit``, and of the private ones that libraries use."""

_JIT_MODULES: Final = frozenset({"_script", "_trace", "_async", "_await", "_freeze", "_serialization", "_ir_utils"})
"""The submodules of ``torch.jit`` from which the names above can be imported too."""

_MARKS: Final = _words(
    "is_scripting is_tracing annotate Final Future Await _overload _overload_method export ignore unused "
    "FunctionModifiers boolean_dispatch _copy_to_script_wrapper BroadcastingList1 BroadcastingList2 "
    "BroadcastingList3 BroadcastingList4 BroadcastingList5 BroadcastingList6 is_ignored_fn _is_exception "
    "get_torchscript_modifier is_optional is_tuple is_list is_dict is_future is_final should_drop "
    "_disable_emit_hooks_decorator weak_module weak_script_method"
)
"""Names of ``torch._jit_internal`` that rekindle supports: decorators, and helpers of eager code."""

_TYPES: Final = frozenset({"Any", "Dict", "List", "Optional", "Tuple", "Union", "Future"})
"""Names of ``typing`` that ``torch.jit.annotations`` has too."""

_SWITCHES: Final = _words(
    """
        _jit_override_can_fuse_on_cpu _jit_override_can_fuse_on_cpu_legacy _jit_override_can_fuse_on_gpu
        _jit_set_autocast_mode _jit_set_bailout_depth _jit_set_fusion_strategy _jit_set_inline_everything_mode
        _jit_set_llga_enabled _jit_set_logging_option _jit_set_num_profiled_runs _jit_set_nvfuser_enabled
        _jit_set_nvfuser_guard_mode _jit_set_nvfuser_horizontal_mode _jit_set_nvfuser_single_node_mode
        _jit_set_profiling_executor _jit_set_profiling_mode _jit_set_te_cuda_pointwise_block_count
        _jit_set_te_cuda_pointwise_block_size _jit_set_te_cuda_pointwise_loop_levels _jit_set_te_generate_block_code
        _jit_set_te_must_use_llvm_cpu _jit_set_texpr_dynamic_shape_enabled _jit_set_texpr_fuser_enabled
        _jit_set_texpr_reductions_enabled _set_graph_executor_optimize
        """
)
"""Functions of ``torch._C`` that set options of PyTorch's executor and fusers."""

_ON_VIEWS: Final = _words(
    """
        _jit_pass_canonicalize _jit_pass_constant_pooling _jit_pass_constant_propagation _jit_pass_cse _jit_pass_dce
        _jit_pass_inline _jit_pass_lint _jit_pass_lower_all_tuples _jit_pass_peephole _jit_pass_remove_mutation
        """
)
"""Functions of ``torch._C`` that take graphs of rekindle, if programs are compiled through the drop-in."""

_C_NAMES: Final = _words(
    """
        AliasDb AnyType Argument BoolType Block BufferDict ClassType Code CompilationUnit ConcreteModuleType
        ConcreteModuleTypeBuilder DeviceObjType DictType EnumType FileCheck FloatType FunctionSchema FutureType Gradient
        Graph InferredType IntType InterfaceType ListType LiteScriptModule ModuleDict Node NoneType NumberType
        OptionalType
        ParameterDict ScriptClass ScriptDict ScriptFunction ScriptList ScriptMethod ScriptModule ScriptObject StringType
        TensorType TracingState TupleType Type UnionType Use Value _create_function_from_graph
        _create_function_from_trace _create_graph_by_tracing _create_method_from_trace _export_operator_list
        _export_opnames _freeze_module _get_graph_executor_optimize _get_operation_overload _get_tracing_state
        _get_value_trace _is_tracing _last_executed_optimized_graph _load_for_lite_interpreter
        _load_for_lite_interpreter_from_buffer _set_graph_executor_optimize _set_tracing_state _set_value_trace
        _tracer_warn_use_python _propagate_and_assign_input_shapes import_ir_module import_ir_module_from_buffer
        merge_type_from_type_comment parse_ir parse_schema parse_type_comment unify_type_list
        """
)
"""Names of ``torch._C`` that belong to TorchScript, beside those that begin with ``_jit_``."""

MOBILE: Final = "PyTorch's mobile runtime, for which rekindle makes no programs"
_UTILITIES: Final = {
    "torch.utils.mobile_optimizer": MOBILE,
    "torch.utils.bundled_inputs": "a tool for PyTorch's own modules and mobile archives",
    "torch.utils.model_dump": "a tool for PyTorch's own archives; 'rekindle inspect' shows what an archive holds",
}

ROOTS: Final = ("torch.jit", "torch._jit_internal", *_UTILITIES)
"""The modules whose names are uses of TorchScript."""


def is_torchscript(dotted: str) -> bool:
    """Return whether a dotted name, such as ``torch.jit.script``, belongs to TorchScript."""
    if any(dotted == root or dotted.startswith(f"{root}.") for root in ROOTS):
        return True
    head, _, name = dotted.partition("torch._C.")
    first = name.partition(".")[0]
    return not head and bool(name) and (first.startswith("_jit_") or first in _C_NAMES)


def classify(dotted: str) -> tuple[str, NameInfo] | None:
    """Return the part of a dotted name that the tables list, and its status: ``torch.jit.script`` for
    ``torch.jit._script.script.__name__``. Return None for a name that no table lists."""
    for root, remark in _UTILITIES.items():
        if dotted == root or dotted.startswith(f"{root}."):
            return root, NameInfo(Status.PYTORCH, remark)
    parts = dotted.split(".")
    if parts[:2] == ["torch", "_C"] and len(parts) > 2:
        return _of_extension(parts[2])
    if parts[:2] == ["torch", "_jit_internal"]:
        known = len(parts) == 2 or parts[2] in _MARKS
        return (".".join(parts[:3]), NameInfo(Status.SAME)) if known else None
    if parts[:2] != ["torch", "jit"]:
        return None
    if len(parts) == 2:
        return "torch.jit", NameInfo(Status.REKINDLE)
    if parts[2] == "annotations":
        known = len(parts) == 3 or parts[3] in _MARKS or parts[3] in _TYPES
        return (".".join(parts[:4]), NameInfo(Status.SAME)) if known else None
    rest = parts[3:] if parts[2] in _JIT_MODULES else parts[2:]
    if not rest:
        return ".".join(parts), NameInfo(Status.REKINDLE)
    found = JIT.get(rest[0])
    return None if found is None else (f"torch.jit.{rest[0]}", found)


def _of_extension(name: str) -> tuple[str, NameInfo] | None:
    dotted = f"torch._C.{name}"
    if name in _SWITCHES:
        return dotted, NameInfo(Status.SWITCH)
    if name in _ON_VIEWS:
        return dotted, NameInfo(Status.REKINDLE, "takes the graphs of what is compiled through the drop-in")
    if name in ("_get_tracing_state", "_is_tracing"):
        return dotted, NameInfo(Status.SAME)
    if name.endswith("lite_interpreter") or name.startswith("_load_for_lite_interpreter"):
        return dotted, NameInfo(Status.PYTORCH, MOBILE)
    return None
