//! A filter of system calls.

use std::io;

/// Has the kernel refuse a system call to this thread, with this error.
#[expect(unsafe_code, reason = "the standard library has no seccomp")]
pub(crate) fn refuse_call(call: libc::c_long, errno: i32) -> io::Result<()> {
    let step = |code: u32, jt, jf, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt,
        jf,
        k,
    };
    let call = u32::try_from(call).unwrap();
    let refusal = libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    // The number of the call is the first word of what a filter sees (seccomp(2)).
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, refusal),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap(),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the filter outlives the calls, and its length is its own; the other arguments are integers.
    let results = unsafe {
        [
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ),
        ]
    };
    if results == [0, 0] {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
