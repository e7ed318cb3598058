"""The operations of opset2 as functions that create layers; opset2.pyi has their signatures."""

from ovir.building.opset import contents

__all__, __getattr__, __dir__ = contents(__name__)
