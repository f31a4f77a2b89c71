"""``rekindle doctor``: what a code base needs in order to leave TorchScript.

In the order in which it runs:

- :mod:`~rekindle.doctor.search` reads files and finds the uses of TorchScript's names, which
  :mod:`~rekindle.doctor.aliases` resolves and :mod:`~rekindle.doctor.names` classifies.
- :mod:`~rekindle.doctor.processes` starts processes that import the code or run a command;
  :mod:`~rekindle.doctor.recording` records there what is compiled and called, and
  :mod:`~rekindle.doctor.comparison` compares results with those of eager.
- :mod:`~rekindle.doctor.verdicts` decides what is reported of each use; :mod:`~rekindle.doctor.changes` edits sources.
- :mod:`~rekindle.doctor.report_text` and :mod:`~rekindle.doctor.report_html` write the report.
"""
