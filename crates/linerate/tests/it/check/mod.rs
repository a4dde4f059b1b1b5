//! `linerate check`: alone, as a plugin of others, and as the health check of a real Slurm cluster.

mod alone;
mod hanging;
mod slurm;
