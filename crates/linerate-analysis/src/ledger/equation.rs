//! The equations of the ledger, in words, and what their two sides are.

/// Two figures that must agree, or of which the left one must not be below the right one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Equation {
    pub(super) words: &'static str,
    /// What the left side is: the beginning of a sentence that its figure ends.
    pub(super) left: &'static str,
    pub(super) right: &'static str,
}

/// Between the sending application and its kernel.
pub(super) const SENDING: Equation = Equation {
    words: "written + cookie = bytes_sent − bytes_retrans + notsent",
    left: "the sending application wrote",
    right: "its kernel sent or still holds",
};

/// The same where the sending host refused bytes that its kernel counts as sent.
pub(super) const SENDING_REFUSED: Equation = Equation {
    words: "written + cookie = bytes_sent − bytes_retrans − refused + notsent",
    ..SENDING
};

/// Between the two applications, where a kernel is not known.
pub(super) const APPLICATIONS: Equation = Equation {
    words: "written = read (the applications' counts, drained)",
    left: "the sending application wrote",
    right: "the receiving application read",
};

/// The sender's interface carries more than its sockets.
pub(super) const INTERFACE_OUT: Equation = Equation {
    words: "interface out ≥ bytes_acked of the sending kernel",
    left: "the sender's interface sent",
    right: "the sending kernel counted as acknowledged",
};

/// The receiver's interface carries more than its sockets.
pub(super) const INTERFACE_IN: Equation = Equation {
    words: "interface in ≥ bytes_received of the receiving kernel",
    left: "the receiver's interface received",
    right: "the receiving kernel received",
};

/// Between what a kernel sent and what was acknowledged, once all is.
pub(super) const ACKNOWLEDGED: Equation = Equation {
    words: "bytes_acked = bytes_sent − bytes_retrans + SYN + FIN",
    left: "the receiver acknowledged",
    right: "the sending kernel sent, retransmits not counted,",
};

/// Between the receiving kernel and its application, once nothing comes in any more.
pub(super) const RECEIVING: Equation = Equation {
    words: "bytes_received − FIN = cookie + read + unread",
    left: "the receiving kernel received",
    right: "its application read or left unread",
};

/// The same while bytes still come in.
pub(super) const RECEIVING_CUT_OFF: Equation = Equation {
    words: "bytes_received − FIN ≥ cookie + read (cut off; the rest unread)",
    left: "the receiving kernel received",
    right: "its application read",
};

/// Between the two kernels, once nothing is in flight.
pub(super) const KERNELS: Equation = Equation {
    words: "sent once = received by the peer's kernel (drained)",
    left: "the sending kernel sent, retransmits not counted,",
    right: "the receiving kernel received",
};

/// The same while bytes are in flight.
pub(super) const KERNELS_CUT_OFF: Equation = Equation {
    words: "sent once + notsent ≥ received by the peer's kernel (the rest in flight)",
    left: "the sending kernel sent or still holds",
    right: "the receiving kernel received",
};

/// No datagram is delivered that was not sent.
pub(super) const DATAGRAMS_DELIVERED: Equation = Equation {
    words: "sent ≥ delivered (datagrams)",
    left: "the sender sent",
    right: "the receiver got",
};

/// Every datagram that was read counts once.
pub(super) const DATAGRAMS_READ: Equation = Equation {
    words: "read = first deliveries + duplicates + too old (datagrams)",
    left: "the receiver read",
    right: "it counted as first deliveries, duplicates or too old",
};
