//! Building energy with batteries, PV and EV charging: CityLearn districts and the Iquitos microgrid.
