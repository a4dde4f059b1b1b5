//! What the kernel's refusals mean, and what to do about them.

use std::io;

use linerate_kernel::KernelError;
use linerate_model::tuning::{InterfaceSetting, Object};

/// The numbers of Linux's errors on all of its architectures that this runs on.
pub(super) mod libc_codes {
    pub(in crate::live) const EPERM: i32 = 1;
    pub(in crate::live) const ENOENT: i32 = 2;
    pub(in crate::live) const EIO: i32 = 5;
    pub(in crate::live) const EACCES: i32 = 13;
    pub(in crate::live) const EBUSY: i32 = 16;
    pub(in crate::live) const ENODEV: i32 = 19;
    pub(in crate::live) const EINVAL: i32 = 22;
    pub(in crate::live) const EROFS: i32 = 30;
    pub(in crate::live) const ERANGE: i32 = 34;
    pub(in crate::live) const EOPNOTSUPP: i32 = 95;
}

/// What the kernel said, and what to do about it.
pub(super) fn advised(error: &KernelError, object: &Object) -> String {
    use libc_codes as code;
    let interface = match object {
        Object::Interface { interface, .. } => interface.as_str(),
        Object::Block { device, .. } => device.as_str(),
        Object::Sysctl { .. } | Object::Governor => "",
    };
    let source: &io::Error = &error.source;
    let advice = match (error.code(), object) {
        (Some(code::EPERM | code::EACCES), _) => {
            "run it as root; in a container the machine may have to do it".to_owned()
        }
        (Some(code::EROFS), _) => {
            "the file system of the kernel's files is read-only here; the machine itself has to do it"
                .to_owned()
        }
        (Some(code::ENOENT), Object::Sysctl { key }) => format!(
            "this kernel, or this network namespace, has no key {key}; perhaps its module is not loaded"
        ),
        (Some(code::ENOENT), Object::Interface { setting: InterfaceSetting::Qdisc, .. }) => {
            "this kernel has no such qdisc; its module (sch_…) may have to be loaded"
                .to_owned()
        }
        (Some(code::ENOENT), Object::Block { setting, .. }) => format!(
            "there is no device {interface}, or it has no {}",
            setting.file()
        ),
        (Some(code::EINVAL | code::ERANGE), Object::Block { .. }) => {
            "the kernel does not take this value for it".to_owned()
        }
        (Some(code::ENODEV), _) => format!("there is no interface {interface}"),
        (Some(code::EOPNOTSUPP), _) => {
            format!("the driver of {interface} has no such setting; leave it out")
        }
        (Some(code::EINVAL | code::ERANGE), _) => {
            "the kernel does not take this value; see its bounds in `linerate host --all`".to_owned()
        }
        (Some(code::EIO), Object::Interface { setting: InterfaceSetting::IrqCpus, .. }) => {
            "the kernel manages this interrupt's CPUs itself; leave irq_cpus out".to_owned()
        }
        (Some(code::EBUSY), _) => "something uses it now; try it again".to_owned(),
        _ => return source.to_string(),
    };
    format!("{source}: {advice}")
}
