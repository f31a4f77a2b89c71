"""Runtime library of native libraries: objects, errors, strings, lists, dicts, tensors and their C form.

It is written in the low-level language (:mod:`rekindle.building.lowlevel`). A library contains the functions that it
calls, and nothing else of it.

Values are words of 64 bits. An int, a float and a bool are one; everything else is the address of an
:class:`~rekindle.building.runtime.objects.Object`, which counts its references; None is the null pointer. A
*descriptor* is a text that says what a word holds (:mod:`rekindle.building.runtime.descriptors`): containers point to
those of their elements, so that they can be compared, printed, freed and handed to C without a static type.
"""
