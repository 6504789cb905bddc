//! Every planted defect against every check: each trips exactly the set declared for it, with the exact count.

mod virtual_time;
