//! Each of the 23 rules of judgement in a history of a few lines in which it decides.

mod delivery;
mod timing;
