"""How much one call of a program asks of a device."""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class DeviceWork:
    """Kernel launches and copied bytes of one call of a program; graph launches are not counted."""

    launches: int = 0
    copies_in: int = 0  # from host to device memory
    copied_in_bytes: int = 0
    copies_out: int = 0  # from device to host memory
    copied_out_bytes: int = 0
    copied_inside_bytes: int = 0  # from device to device memory

    def with_launch(self) -> "DeviceWork":
        """Returns this work and one launch."""
        return replace(self, launches=self.launches + 1)

    def since(self, earlier: "DeviceWork") -> "DeviceWork":
        """Returns what was added to ``earlier``."""
        names = [field.name for field in fields(self)]
        return DeviceWork(**{name: getattr(self, name) - getattr(earlier, name) for name in names})

    def with_copy(self, size_bytes: int, *, to_device: bool, from_device: bool) -> "DeviceWork":
        """Returns this work and a copy of ``size_bytes`` bytes; a copy from host to host changes nothing."""
        if to_device and from_device:
            return replace(self, copied_inside_bytes=self.copied_inside_bytes + size_bytes)
        if to_device:
            total = self.copied_in_bytes + size_bytes
            return replace(self, copies_in=self.copies_in + 1, copied_in_bytes=total)
        if from_device:
            total = self.copied_out_bytes + size_bytes
            return replace(self, copies_out=self.copies_out + 1, copied_out_bytes=total)
        return self
