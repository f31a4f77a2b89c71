"""The types of values, their subtyping, and their unification.

Modules that the class types depend on (:mod:`rekindle.ir.graph_function` and what it imports) import from the modules
of this folder directly: from here, they would depend on the class types in turn.
"""

from rekindle.ir.types.base import (
    ANY as ANY,
    ANY_CLASS as ANY_CLASS,
    ANY_ENUM as ANY_ENUM,
    ANY_LIST as ANY_LIST,
    ANY_TUPLE as ANY_TUPLE,
    BOOL as BOOL,
    CAPSULE as CAPSULE,
    COMPLEX as COMPLEX,
    DEVICE as DEVICE,
    DTYPE as DTYPE,
    FLOAT as FLOAT,
    GENERATOR as GENERATOR,
    INT as INT,
    LAYOUT as LAYOUT,
    MEMORY_FORMAT as MEMORY_FORMAT,
    NONE as NONE,
    NUMBER as NUMBER,
    QSCHEME as QSCHEME,
    STORAGE as STORAGE,
    STREAM as STREAM,
    STRING as STRING,
    AnyType as AnyType,
    BoolType as BoolType,
    ComplexType as ComplexType,
    DeviceType as DeviceType,
    FloatType as FloatType,
    GeneratorType as GeneratorType,
    IntType as IntType,
    NoneType as NoneType,
    NumberType as NumberType,
    StringType as StringType,
    Type as Type,
    UnionBase as UnionBase,
    VarType as VarType,
    has_free_variables as has_free_variables,
)
from rekindle.ir.types.container_subclasses import holds_set as holds_set, lost_class as lost_class
from rekindle.ir.types.containers import (
    AwaitType as AwaitType,
    DictType as DictType,
    FutureType as FutureType,
    ListType as ListType,
    OptionalType as OptionalType,
    RRefType as RRefType,
    TupleType as TupleType,
    UnionType as UnionType,
    differs_in_python as differs_in_python,
    is_open_named_tuple as is_open_named_tuple,
    open_tuple_in as open_tuple_in,
    optional as optional,
    union as union,
    union_members as union_members,
    without_none as without_none,
)
from rekindle.ir.types.enums import EnumType as EnumType
from rekindle.ir.types.mismatch import mismatch_note as mismatch_note
from rekindle.ir.types.named import (
    LIBRARY_CLASSES as LIBRARY_CLASSES,
    ClassAttribute as ClassAttribute,
    ClassType as ClassType,
    FunctionType as FunctionType,
    InterfaceType as InterfaceType,
    Property as Property,
    keep_type as keep_type,
    kept_type as kept_type,
)
from rekindle.ir.types.tensor import (
    DTYPE_NAMES as DTYPE_NAMES,
    TENSOR as TENSOR,
    TensorType as TensorType,
    tensor_type as tensor_type,
)
from rekindle.ir.types.unify import (
    Bindings as Bindings,
    as_python_has as as_python_has,
    is_open_number as is_open_number,
    is_python_key as is_python_key,
    join_any as join_any,
    join_assigned as join_assigned,
    join_contents as join_contents,
    join_numbers as join_numbers,
    join_values as join_values,
    match_variables as match_variables,
    may_be_bool as may_be_bool,
    number_beside_tensor as number_beside_tensor,
    number_members as number_members,
    present as present,
    substitute as substitute,
    unify as unify,
    unify_all as unify_all,
    unshaped as unshaped,
)
