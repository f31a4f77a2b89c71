"""Passes on frozen modules, whose weights are constants: folding into convolutions and linear maps, packing for
oneDNN.
"""
