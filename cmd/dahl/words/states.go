package words

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/plan"
)

// PrintStates says what clocks, sleep and caps did; nothing where there are none.
func PrintStates(out io.Writer, s *plan.States) {
	if s == nil {
		return
	}
	for _, device := range clockedDevices(s) {
		fmt.Fprintf(out, "clocks    %s per step: %s\n", device, clockUses(s, device))
	}
	var parts []string
	for _, u := range s.Sleeps {
		parts = append(parts, fmt.Sprintf("%s %s in %s (%s×)", u.Of, cli.ShowTime(u.AsleepS), u.State, cli.ThreeDigits(u.Count)))
	}
	if parts != nil {
		fmt.Fprintf(out, "asleep    per step: %s\n", strings.Join(parts, ", "))
	}
	j := &s.Joules
	fmt.Fprintf(out, "causes    per step: idle %s, busy %s, transfers %s, host %s, asleep or off %s, changes %s\n",
		cli.ShortJoules(j.Idle), cli.ShortJoules(j.Busy), cli.ShortJoules(j.Transfer), cli.ShortJoules(j.Host), cli.ShortJoules(j.Sleep), cli.ShortJoules(j.Switching))
	for _, c := range s.Caps {
		fmt.Fprintf(out, "cap       %s: %s W, at most %s W reached\n", c.Of, cli.ThreeDigits(c.CapWatts), cli.ThreeDigits(c.GreatestWatts))
	}
	if len(s.LeftAsleep) > 0 {
		fmt.Fprintf(out, "asleep    all the time: units left out of %s\n", strings.Join(s.LeftAsleep, ", "))
	}
	if len(s.Off) > 0 {
		fmt.Fprintf(out, "off       %s\n", strings.Join(s.Off, ", "))
	}
}

// clockedDevices names the devices whose clocks changed.
func clockedDevices(s *plan.States) (devices []string) {
	for _, u := range s.Clocks {
		devices = append(devices, u.Device)
	}
	for _, u := range s.Switches {
		devices = append(devices, u.Device)
	}
	slices.Sort(devices)
	return slices.Compact(devices)
}

// clockUses says how much of a device's work was at which clock: "tasks 1 at nominal (33.3 % of the
// busy time), 2 at slow (66.7 %); changes 1 (3 ms)".
func clockUses(s *plan.States, device string) string {
	var tasks []string
	of, text := " of the busy time", ""
	for _, u := range s.Clocks {
		if u.Device == device {
			tasks = append(tasks, fmt.Sprintf("%s at %s (%.3g %%%s)", cli.ThreeDigits(u.Tasks), u.Clock, 100*u.Share, of))
			of = ""
		}
	}
	for _, u := range s.Switches {
		if u.Device == device {
			text = fmt.Sprintf("; changes %s (%s)", cli.ThreeDigits(u.Count), cli.ShowTime(u.S))
		}
	}
	return "tasks " + strings.Join(tasks, ", ") + text
}
