//! What the Linux kernel knows of a connection and a host, and what it lets us change: socket
//! options and counters, `tcp_info`, batches of datagrams, clocks, CPUs, routes, interfaces, block devices, mounts and
//! files, and all of a host at once ([`inventory`]); and the settings of a host ([`setting`]).
//!
//! What it is not: it decides nothing, prints nothing, keeps no history and starts no thread. A
//! function is one question to the kernel or one setting. What this kernel does not know is `None`,
//! never 0. Nothing here blocks except [`poll::wait`], for as long as its caller says, [`file::lock`], until
//! another lets go, [`ring::Ring::wait`], until something ends, the netlink questions of [`route`], [`counters`],
//! [`link`], [`inventory`], [`forward_rules`] and [`tcp_table`], for at most a second, [`echo::answers`], for as long as its
//! caller says, and what reads or writes a file, for as long as its disk or server takes.
//!
//! It is the only room with `unsafe`; the modules that need it say so in their first line.
//!
//! ```
//! use std::net::{TcpListener, TcpStream};
//! use linerate_model::tcp_info::TcpFacts;
//!
//! # fn main() -> std::io::Result<()> {
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let stream = TcpStream::connect(listener.local_addr()?)?;
//! linerate_kernel::tcp::set_nodelay(&stream, true)?;
//! let facts = TcpFacts::from(&linerate_kernel::tcp::info(&stream)?);
//! assert_eq!(facts.state, Some(1)); // ESTABLISHED
//! # Ok(())
//! # }
//! ```

pub mod activation;
mod address;
pub mod aligned;
pub mod clock;
mod control;
pub mod counters;
pub mod device_mapper;
pub mod directory;
pub mod echo;
mod error;
mod ethtool;
pub mod event;
pub mod extent;
pub mod file;
pub mod file_system;
pub mod forward_rules;
pub mod host;
pub mod inventory;
pub mod link;
pub mod loop_device;
pub mod mount_table;
pub mod mounts;
pub mod namespace;
mod netlink;
mod option;
pub mod packet_queue;
pub mod poll;
mod proc_file;
pub mod process;
pub mod process_io;
pub mod process_sockets;
pub mod ring;
mod rooted_path;
pub mod route;
pub mod sctp;
pub mod setting;
mod signal;
pub mod socket;
pub mod splice;
pub mod tcp;
pub mod tcp_table;
pub mod terminal;
pub mod thread;
pub mod tree;
pub mod udp;

pub use error::KernelError;
