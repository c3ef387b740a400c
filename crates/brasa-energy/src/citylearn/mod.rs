//! CityLearn districts: data, physics, rewards, indicators and rule-based controllers.
