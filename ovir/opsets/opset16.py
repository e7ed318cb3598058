"""The operations of opset16 as functions that create layers; opset16.pyi has their signatures."""

from ovir.building.opset import contents

__all__, __getattr__, __dir__ = contents(__name__)
