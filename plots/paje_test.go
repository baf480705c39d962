package plots

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dahl/must"
	"dahl/schedule"
)

// overlapping is a run whose GPU runs two tasks at once, as with two streams.
func overlapping(t *testing.T) *Run {
	r := tinyRun(t, schedule.Measured, 1)
	for i := range r.Schedule.Spans {
		if s := &r.Schedule.Spans[i]; s.Worker == 2 && s.End+5*us <= r.Schedule.Makespan {
			s.End += 5 * us // past the start of the next, which is 2 us later
		}
	}
	return r
}

// pajeLine is an event with its fields by name.
type pajeLine struct {
	event  string
	fields map[string]string
}

// readPaje reads a trace by its own header, as a viewer does.
func readPaje(t *testing.T, text string) []pajeLine {
	t.Helper()
	type definition struct {
		event  string
		fields []string
	}
	definitions := map[string]*definition{}
	var open *definition
	var lines []pajeLine
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		words := pajeWords(line)
		switch {
		case words[0] == "%EventDef":
			open = &definition{event: words[1]}
			if definitions[words[2]] != nil {
				t.Fatalf("line %d: event number %s is defined twice", n+1, words[2])
			}
			definitions[words[2]] = open
		case words[0] == "%EndEventDef":
			open = nil
		case words[0] == "%":
			open.fields = append(open.fields, words[1])
		default:
			d := definitions[words[0]]
			if d == nil || len(words) != 1+len(d.fields) {
				t.Fatalf("line %d: %q does not fit its definition %+v", n+1, line, d)
			}
			l := pajeLine{d.event, map[string]string{}}
			for i, f := range d.fields {
				l.fields[f] = words[1+i]
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// pajeWords splits at blanks outside quotes.
func pajeWords(line string) []string {
	var words []string
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] == '"' {
			end := strings.IndexByte(line[1:], '"') + 1
			words, line = append(words, line[1:end]), line[end+1:]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		words, line = append(words, word), rest
	}
	return words
}

func pajeOf(t *testing.T, r *Run) []pajeLine {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, Paje(&out, r))
	return readPaje(t, out.String())
}

func pajeTime(t *testing.T, s string) time.Duration {
	t.Helper()
	whole, fraction, _ := strings.Cut(s, ".")
	ns, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil || len(fraction) != 9 {
		t.Fatalf("time %q", s)
	}
	return time.Duration(ns)
}

// Types, containers and values are declared before they are used and containers
// destroyed once; time never goes back.
func TestPajeIsWellFormed(t *testing.T) {
	for name, r := range map[string]*Run{"tiny": tinyRun(t, schedule.Measured, 1), "overlapping": overlapping(t), "large": largeRun(t, 2000, 4, 2, 5)} {
		known, live := map[string]bool{"0": true}, map[string]bool{"0": true}
		last := time.Duration(0)
		for _, l := range pajeOf(t, r) {
			if at, ok := l.fields["Time"]; ok {
				if now := pajeTime(t, at); now < last {
					t.Errorf("%s: time goes back from %v to %v", name, last, now)
				} else {
					last = now
				}
			}
			for field, v := range l.fields {
				switch field {
				case "Type", "StartContainerType", "EndContainerType":
					if !known[v] {
						t.Errorf("%s: %s uses unknown type %q", name, l.event, v)
					}
				case "Container", "StartContainer", "EndContainer":
					if !live[v] {
						t.Errorf("%s: %s uses container %q, which does not exist", name, l.event, v)
					}
				case "Value":
					if l.event != "PajeSetVariable" && !known[v] {
						t.Errorf("%s: %s uses unknown value %q", name, l.event, v)
					}
				}
			}
			switch {
			case strings.HasPrefix(l.event, "PajeDefine"):
				known[l.fields["Alias"]] = true
			case l.event == "PajeCreateContainer":
				live[l.fields["Alias"]] = true
			case l.event == "PajeDestroyContainer":
				if !live[l.fields["Name"]] {
					t.Errorf("%s: container %q is destroyed twice", name, l.fields["Name"])
				}
				delete(live, l.fields["Name"])
			}
		}
		if len(live) != 1 {
			t.Errorf("%s: containers %v were never destroyed", name, live)
		}
	}
}

// Reading states back, each lasting until the next of its container, gives the
// spans of the schedule; reading links back gives the transfers.
func TestPajeHoldsTheSchedule(t *testing.T) {
	for name, r := range map[string]*Run{"tiny": tinyRun(t, schedule.Measured, 1), "overlapping": overlapping(t)} {
		lines := pajeOf(t, r)
		var got, want []string
		open := map[string]pajeLine{}
		links := map[string]pajeLine{}
		finish := func(container string, end time.Duration) {
			if s, ok := open[container]; ok && s.fields["Value"][0] == 'V' {
				got = append(got, fmt.Sprint(s.fields["Task"], " ", s.fields["Step"], " ", pajeTime(t, s.fields["Time"]), " ", end))
			}
		}
		for _, l := range lines {
			switch l.event {
			case "PajeSetState":
				finish(l.fields["Container"], pajeTime(t, l.fields["Time"]))
				open[l.fields["Container"]] = l
			case "PajeDestroyContainer":
				finish(l.fields["Name"], pajeTime(t, l.fields["Time"]))
			case "PajeStartLink":
				links[l.fields["Key"]] = l
			case "PajeEndLink":
				start := links[l.fields["Key"]]
				got = append(got, fmt.Sprintf("%s %s %v %v", start.fields["StartContainer"], l.fields["EndContainer"], pajeTime(t, start.fields["Time"]), pajeTime(t, l.fields["Time"])))
			}
		}
		for _, s := range r.Schedule.Spans {
			want = append(want, fmt.Sprint(r.Problem.Graph.Tasks[s.Task].Name, " ", s.Step, " ", s.Start, " ", s.End))
		}
		for _, x := range r.Schedule.Transfers {
			want = append(want, fmt.Sprintf("m%d m%d %v %v", x.From, x.To, x.Start, x.End))
		}
		slices.SortFunc(got, cmp.Compare)
		slices.SortFunc(want, cmp.Compare)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the trace reads back as\n%q\nwant\n%q", name, got, want)
		}
	}
}

func TestPajeQuotesNames(t *testing.T) {
	if got, want := quoted("a \"b\"\nc"), `"a 'b' c"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
