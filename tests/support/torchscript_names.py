"""Which names of PyTorch belong to its own TorchScript, and are closed to the package."""

from __future__ import annotations

import torch

# Functions of torch._C besides all that begin with `_jit_`. Reading schemas and the dispatcher's tables is fine, so
# `_get_schema` and `_dispatch_*` are not among them.
FUNCTIONS = frozenset(
    """
    _awaitable _awaitable_nowait _awaitable_wait _compile_graph_to_code_table _create_function_from_graph
    _create_function_from_trace _create_function_from_trace_with_dict _create_graph_by_tracing
    _create_module_with_type _create_object_with_type _debug_get_fusion_group_inlining
    _debug_set_autodiff_subgraph_inlining _debug_set_fusion_group_inlining _export_operator_list _export_opnames
    _freeze_module _fuse_to_static_module _generate_upgraders_graph _get_graph_exec_group
    _get_graph_executor_optimize _get_operation_overload _get_tracing_state _get_value_trace
    _hack_do_not_use_clone_module_with_class _import_ir_module_from_package _is_tracing
    _last_executed_optimized_graph _load_for_lite_interpreter _load_for_lite_interpreter_from_buffer
    _load_jit_module_from_bytes _load_jit_module_from_file _load_mobile_module_from_bytes
    _load_mobile_module_from_file _parse_source_def _propagate_and_assign_input_shapes _propagate_shapes
    _propagate_xla_data _quantize_ondevice_ptq_dynamic _replace_overloaded_method_decl _resolve_type
    _resolve_type_from_object _run_emit_module_hook _save_jit_module _save_jit_module_to_bytes
    _save_mobile_module _save_mobile_module_to_bytes _save_parameters _set_graph_exec_group
    _set_graph_executor_optimize _set_tracing_state _set_value_trace _tracer_set_force_outplace
    _tracer_set_get_unique_name_fn _tracer_warn_use_python fork import_ir_module import_ir_module_from_buffer
    merge_type_from_type_comment parse_ir parse_schema parse_type_comment unify_type_list wait
    """.split()
)

# Classes of torch._C of which neither the constructor nor any method is open to the package.
CLASSES = frozenset(
    """
    AliasDb ArgumentSpec Block BufferDict CallStack Code CompilationUnit CompleteArgumentSpec ConcreteModuleType
    ConcreteModuleTypeBuilder DeserializationStorageContext ErrorReport ExecutionPlan FileCheck Gradient Graph
    GraphExecutorState InferredType LiteScriptModule ModuleDict Node ParameterDict ScriptClass ScriptClassFunction
    ScriptDict ScriptFunction ScriptList ScriptMethod ScriptModule ScriptModuleSerializer ScriptObjectProperty
    StaticModule TracingState Use Value _Await
    """.split()
)

# Classes that come along with the schema of an operator, which may be read: their constructors are closed, and so are
# the static methods that stand in for constructors (`TensorType.get`), but not their other methods.
READABLE_CLASSES = frozenset(
    """
    AnyType Argument AwaitType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType
    FunctionSchema FutureType IntType InterfaceType ListType NoneType NumberType OptionalType PyObjectType RRefType
    ScriptObject StreamObjType StringType SymBoolType SymIntType TensorType TupleType Type UnionType _GeneratorType
    """.split()
)

# Programs use these, so the package has to know them when it sees them: functions that mean something of their own in
# a program, and classes that occur in annotations, hold attributes, or are refused. It may ask for their identity and
# nothing else.
KNOWN_BY_IDENTITY = frozenset(
    """
    torch._C._get_tracing_state torch._C._is_tracing
    torch.jit.annotate torch.jit.isinstance torch.jit.is_tracing torch.jit._unwrap_optional
    torch.jit.fork torch.jit.wait torch.jit._awaitable torch.jit._awaitable_wait torch.jit._awaitable_nowait
    torch.jit.Attribute torch.jit.Future torch.jit.ScriptFunction torch.jit.ScriptModule
    """.split()
)


def is_forbidden(dotted: str) -> bool:
    """Whether a dotted name, such as ``torch.jit.script`` or ``torch._C.Graph``, is closed to the package's code."""
    parts = dotted.split(".")
    if parts[:2] == ["torch", "jit"]:
        return True
    if parts[:2] != ["torch", "_C"] or len(parts) < 3:
        return False
    return parts[2].startswith("_jit_") or parts[2] in FUNCTIONS | CLASSES | READABLE_CLASSES


def operator_name(operator: torch._ops.OpOverload) -> str:
    """The operator's name as the dispatcher spells it: ``aten::add.Tensor``, ``aten::relu``."""
    return str(operator.name())


def dispatcher_operators() -> frozenset[str]:
    """The names of the operators that the dispatcher has."""
    return frozenset(torch._C._dispatch_get_all_op_names())
