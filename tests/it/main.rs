//! Everything that needs more than one part of herd: real sockets, child processes, the command line, whole histories.

mod cli;
mod client;
mod defects;
mod files;
mod layers;
mod rules;
mod run;
mod secure;
mod server;
mod simulation;
mod storm;
mod target;
