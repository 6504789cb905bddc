//! The reference server; to be written.

pub mod defect;
