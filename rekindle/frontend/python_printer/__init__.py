"""Printer of graphs and types as TorchScript source: for ``.code``, and for archives.

.. code-block:: text

    graph(%x : Tensor, %n : int):                          def f(x: Tensor,
      %1 : int = prim::Constant[value=1]()                     n: int) -> Tensor:
      %3 : Tensor = aten::mul(%x, %n)            ->          return torch.add(torch.mul(x, n), x)
      %4 : Tensor = aten::add(%3, %x, %1)
      return (%4)

The text has the semantics of the graph if it is read with the names that are special in archives: operators under
``torch`` and ``ops``, ``CONSTANTS``, ``annotate``, ``unchecked_cast``, ``uninitialized``, ``fork``, ``inf``, ``nan``,
and types by their qualified names.

The files: :mod:`tagged_text` (pieces of text with their source locations), :mod:`names`, :mod:`expression_inlining`
(which values become part of an expression), :mod:`constants`, :mod:`expressions` (one node), :mod:`functions`
(statements), :mod:`named_types` (definitions), :mod:`printer` (the interface of the package).
"""

from rekindle.frontend.python_printer.constants import ConstantTable as ConstantTable
from rekindle.frontend.python_printer.names import NamedType as NamedType, named_types_in as named_types_in
from rekindle.frontend.python_printer.printer import PythonPrinter as PythonPrinter
