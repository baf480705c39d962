package meter

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ThermalRoot is where Linux shows sensors of temperature.
const ThermalRoot = "/sys/class/thermal"

// PackageSensor reads the temperature of the hottest processor package under a directory of thermal
// zones (ThermalRoot), in degrees Celsius. Nil means that there is no such sensor.
func PackageSensor(root string) func() (float64, error) {
	zones, _ := filepath.Glob(filepath.Join(root, "thermal_zone*", "type"))
	var sensors []string
	for _, zone := range zones {
		if kind, err := os.ReadFile(zone); err == nil && strings.TrimSpace(string(kind)) == "x86_pkg_temp" {
			sensors = append(sensors, filepath.Join(filepath.Dir(zone), "temp"))
		}
	}
	if sensors == nil {
		return nil
	}
	return func() (float64, error) {
		hottest := 0.0
		for _, path := range sensors {
			text, err := os.ReadFile(path)
			if err != nil {
				return 0, fmt.Errorf("read a temperature: %w", err)
			}
			thousandths, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
			if err != nil {
				return 0, fmt.Errorf("read a temperature: %s holds %.40q, not thousandths of a degree", path, text)
			}
			hottest = max(hottest, thousandths/1000)
		}
		return hottest, nil
	}
}
