#![expect(unsafe_code, reason = "cpuid is an instruction")]
//! What only the processor of the running machine knows.

/// The hypervisor's name as systemd-detect-virt(1) calls it, from the processor's leaf `0x4000_0000`; `None` where
/// there is none or it does not name itself.
#[cfg(target_arch = "x86_64")]
pub(super) fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    const NAMES: [(&str, &str); 9] = [
        ("KVMKVMKVM", "kvm"),
        ("Linux KVM Hv", "kvm"),
        ("TCGTCGTCGTCG", "qemu"),
        ("VMwareVMware", "vmware"),
        ("Microsoft Hv", "microsoft"),
        ("XenVMMXenVMM", "xen"),
        ("bhyve bhyve ", "bhyve"),
        ("VBoxVBoxVBox", "oracle"),
        ("ACRNACRNACRN", "acrn"),
    ];
    #[expect(
        unused_unsafe,
        reason = "the compiler of a later version knows that it is safe"
    )]
    // SAFETY: every x86-64 processor has cpuid; it reads and writes registers only.
    let (there, leaf) = unsafe { (__cpuid(1).ecx >> 31 & 1 == 1, __cpuid(0x4000_0000)) };
    if !there {
        return None;
    }
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end_matches('\0');
    NAMES
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, name)| (*name).to_owned())
}

/// On other processors the firmware tells.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn hypervisor() -> Option<String> {
    None
}
