"""Run-time library of native libraries: objects, errors, strings, lists, dicts, tensors and their C form.

It is written in the low-level language (:mod:`rekindle.building.lowlevel`). A library contains only the functions that
it calls.

Values are words of 64 bits. An int, a float and a bool are stored in the word itself; everything else is the address of
an :class:`~rekindle.building.runtime.objects.Object`, which has a reference count; None is the null pointer. A
*descriptor* is a string that encodes the type of a word (:mod:`rekindle.building.runtime.descriptors`). A container
points to the descriptors of its elements, so that it can be compared, printed, freed and passed to C without a static
type.
"""
