//! CSV files with named columns, with the names of both CityLearn generations.

use std::path::PathBuf;

use brasa_env::field;
use brasa_power::{
    EnergyError,
    delimited::{Delimited, given_twice, is_missing},
};

use super::files::Files;

/// Names of the columns since CityLearn 2.2, and their names in data sets up to 2.1.2.
const ALIASES: [(&str, &str); 41] = [
    ("month", "Month"),
    ("hour", "Hour"),
    ("day_type", "Day Type"),
    ("daylight_savings_status", "Daylight Savings Status"),
    ("indoor_dry_bulb_temperature", "Indoor Temperature [C]"),
    ("average_unmet_cooling_setpoint_difference", "Average Unmet Cooling Setpoint Difference [C]"),
    ("indoor_relative_humidity", "Indoor Relative Humidity [%]"),
    ("non_shiftable_load", "Equipment Electric Power [kWh]"),
    ("dhw_demand", "DHW Heating [kWh]"),
    ("cooling_demand", "Cooling Load [kWh]"),
    ("heating_demand", "Heating Load [kWh]"),
    ("solar_generation", "Solar Generation [W/kW]"),
    ("outdoor_dry_bulb_temperature", "Outdoor Drybulb Temperature [C]"),
    ("outdoor_relative_humidity", "Relative Humidity [%]"),
    ("diffuse_solar_irradiance", "Diffuse Solar Radiation [W/m2]"),
    ("direct_solar_irradiance", "Direct Solar Radiation [W/m2]"),
    ("outdoor_dry_bulb_temperature_predicted_1", "6h Prediction Outdoor Drybulb Temperature [C]"),
    ("outdoor_dry_bulb_temperature_predicted_2", "12h Prediction Outdoor Drybulb Temperature [C]"),
    ("outdoor_dry_bulb_temperature_predicted_3", "24h Prediction Outdoor Drybulb Temperature [C]"),
    ("outdoor_relative_humidity_predicted_1", "6h Prediction Relative Humidity [%]"),
    ("outdoor_relative_humidity_predicted_2", "12h Prediction Relative Humidity [%]"),
    ("outdoor_relative_humidity_predicted_3", "24h Prediction Relative Humidity [%]"),
    ("diffuse_solar_irradiance_predicted_1", "6h Prediction Diffuse Solar Radiation [W/m2]"),
    ("diffuse_solar_irradiance_predicted_2", "12h Prediction Diffuse Solar Radiation [W/m2]"),
    ("diffuse_solar_irradiance_predicted_3", "24h Prediction Diffuse Solar Radiation [W/m2]"),
    ("direct_solar_irradiance_predicted_1", "6h Prediction Direct Solar Radiation [W/m2]"),
    ("direct_solar_irradiance_predicted_2", "12h Prediction Direct Solar Radiation [W/m2]"),
    ("direct_solar_irradiance_predicted_3", "24h Prediction Direct Solar Radiation [W/m2]"),
    ("outdoor_relative_humidity", "Outdoor Relative Humidity [%]"),
    ("outdoor_relative_humidity_predicted_1", "6h Prediction Outdoor Relative Humidity [%]"),
    ("outdoor_relative_humidity_predicted_2", "12h Prediction Outdoor Relative Humidity [%]"),
    ("outdoor_relative_humidity_predicted_3", "24h Prediction Outdoor Relative Humidity [%]"),
    ("occupant_count", "Occupant Count [people]"),
    ("hvac_mode", "HVAC Mode [Off/Cooling/Heating]"),
    // Older data has one set point.
    ("indoor_dry_bulb_temperature_cooling_set_point", "Temperature Set Point [C]"),
    ("indoor_dry_bulb_temperature_heating_set_point", "Temperature Set Point [C]"),
    ("electricity_pricing", "Electricity Pricing [$/kWh]"),
    ("electricity_pricing_predicted_1", "6h Prediction Electricity Pricing [$/kWh]"),
    ("electricity_pricing_predicted_2", "12h Prediction Electricity Pricing [$/kWh]"),
    ("electricity_pricing_predicted_3", "24h Prediction Electricity Pricing [$/kWh]"),
    ("carbon_intensity", "kg_CO2/kWh"),
];

/// A CSV file with unparsed cells.
pub(super) struct Table {
    path: PathBuf,
    text: Delimited,
}

impl Table {
    /// Reads the file `name`.
    pub(super) fn read(files: &Files, name: &str) -> Result<Self, EnergyError> {
        let path = files.path(name);
        let text = Delimited::read(&path, &files.read(name)?)?;
        let table = Self { path, text };
        for (name, _) in ALIASES {
            let mut found = table.indices(name);
            if let (Some(first), Some(second)) = (found.next(), found.next()) {
                return Err(given_twice(&table.path, name, (&table.text.header, first, second)));
            }
        }
        Ok(table)
    }

    /// Number of rows, without the header.
    pub(super) fn n_rows(&self) -> usize {
        self.text.records.len()
    }

    /// The path of the table.
    pub(super) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Whether the column `name`, or its older name, exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.index(name).is_some()
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.indices(name).next()
    }

    /// The columns that `name` may stand for; a table with two of them is refused.
    fn indices(&self, name: &str) -> impl Iterator<Item = usize> {
        let is_named = move |column: &str| column == name || old_names(name).any(|old| same_old_name(column, old));
        self.text.header.iter().enumerate().filter(move |(_, column)| is_named(column)).map(|(index, _)| index)
    }

    /// The numbers of column `name`, each finite and between `low` and `high`.
    ///
    /// # Errors
    /// [`EnergyError::MissingColumn`]; [`EnergyError::Cell`] with the row in the file and the header's own name.
    pub(super) fn column(&self, name: &str, low: f32, high: f32) -> Result<Vec<f32>, EnergyError> {
        let index = self.needed(name)?;
        self.text.cells(index).enumerate().map(|(row, cell)| self.number(row, index, &cell, low, high)).collect()
    }

    /// The numbers of column `name` as [`Table::column`], `missing` where the cell is empty or `NaN`.
    ///
    /// # Errors
    /// Those of [`Table::column`].
    pub(super) fn column_or(&self, name: &str, low: f32, high: f32, missing: f32) -> Result<Vec<f32>, EnergyError> {
        let index = self.needed(name)?;
        let number = |(row, cell): (usize, String)| match is_missing(&cell) {
            true => Ok(missing),
            false => self.number(row, index, &cell, low, high),
        };
        self.text.cells(index).enumerate().map(number).collect()
    }

    /// The trimmed cells of column `name`, which may be empty.
    ///
    /// # Errors
    /// [`EnergyError::MissingColumn`].
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, EnergyError> {
        Ok(self.text.cells(self.needed(name)?).collect())
    }

    /// The error of a cell in `row` of the data, 0 being the first below the header.
    pub(super) fn cell_error(&self, row: usize, name: &str, rule: &str, value: &str) -> EnergyError {
        EnergyError::Cell {
            path: self.path.clone(),
            row: row + 2,
            column: field::printable(self.index(name).map_or(name, |index| &self.text.header[index])),
            rule: rule.into(),
            value: field::printable(value),
        }
    }

    /// The text of a cell of column `name`, for messages; empty without this column.
    pub(super) fn shown(&self, row: usize, name: &str) -> String {
        self.index(name).map(|index| self.text.cell(row, index)).unwrap_or_default()
    }

    /// The column `name`.
    ///
    /// # Errors
    /// [`EnergyError::MissingColumn`].
    pub(super) fn needed(&self, name: &str) -> Result<usize, EnergyError> {
        self.index(name).ok_or_else(|| EnergyError::MissingColumn {
            path: self.path.clone(),
            column: name.into(),
            aliases: match old_names(name).next() {
                None => "no other name".into(),
                Some(_) => old_names(name).map(|old| format!("`{old}`")).collect::<Vec<_>>().join(" or "),
            },
        })
    }

    fn number(&self, row: usize, index: usize, cell: &str, low: f32, high: f32) -> Result<f32, EnergyError> {
        let fail = |rule: &str| Err(self.cell_error(row, &self.text.header[index], rule, cell));
        match cell.parse::<f32>() {
            Err(_) => fail("must be a number"),
            Ok(value) if value.is_nan() => fail("must be finite; `NaN` stands for a number that is missing"),
            Ok(value) if !value.is_finite() => fail("must be finite"),
            Ok(value) if value < low || value > high => fail(&format!("must be in [{low}, {high}]")),
            Ok(value) => Ok(value),
        }
    }
}

/// The names of a column in data sets up to 2.1.2.
fn old_names(name: &str) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter(move |(new, _)| *new == name).map(|(_, old)| *old)
}

/// Whether `column` is the old name `old`, which also occurs with round brackets and without the word for forecasts; some
/// prices are forecast for the next three hours.
fn same_old_name(column: &str, old: &str) -> bool {
    let plain = |name: &str| {
        let name = name.replace('(', "[").replace(')', "]").replace("Prediction ", "");
        let next_hours = [("1h Electricity", "6h Electricity"), ("2h Electricity", "12h Electricity")];
        let next_hours = next_hours.into_iter().chain([("3h Electricity", "24h Electricity")]);
        let mut found = next_hours.filter_map(|(near, far)| name.strip_prefix(near).map(|rest| format!("{far}{rest}")));
        found.next().unwrap_or_else(|| name.clone())
    };
    column == old || plain(column) == plain(old)
}
