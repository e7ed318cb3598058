"""The operations of opset10 as functions that create layers; opset10.pyi has their signatures."""

from ovir.building.opset import contents

__all__, __getattr__, __dir__ = contents(__name__)
