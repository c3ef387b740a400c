//! The Iquitos microgrid: PV, a battery, a mall and 128 sockets for light electric vehicles.
