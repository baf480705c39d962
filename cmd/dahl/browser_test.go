package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dahl/must"
)

// browser is a Chromium with one page, spoken to by the DevTools protocol over a pair of pipes:
// JSON objects that end with a zero byte.
type browser struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	last    int
	session string
	loaded  bool     // the last page
	errors  []string // what the console and the page complained of, and what was asked for
}

// openBrowser starts Chromium, which the end of the test ends. Without one the test is skipped.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	chromium := ""
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
		}
	}
	if chromium == "" {
		t.Skip("no Chromium to open a report with (Debian: apt-get install chromium)")
	}
	commands, in := must.Get2(os.Pipe())(t)
	out, answers := must.Get2(os.Pipe())(t)
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+t.TempDir(), "--window-size=1300,900", "--remote-debugging-pipe")
	cmd.ExtraFiles = []*os.File{commands, answers} // 3 and 4 there
	must.Do(t, cmd.Start())
	commands.Close()
	answers.Close()
	b := &browser{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		b.call("Browser.close", nil, nil)
		cmd.Wait()
		in.Close()
		out.Close()
	})
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call sends a command and reads up to its answer. Events on the way are kept if they are complaints.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.last++
	message := map[string]any{"id": b.last, "method": method, "params": params}
	if params == nil {
		delete(message, "params")
	}
	if b.session != "" && !strings.HasPrefix(method, "Browser.") {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	for err == nil {
		var answer answer
		if answer, err = b.read(); err != nil || answer.ID != b.last {
			continue
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		}
		if result != nil {
			err = json.Unmarshal(answer.Result, result)
		}
		if err == nil {
			return
		}
	}
	b.t.Fatalf("%s: %v", method, err)
}

// answer is what comes from the browser: the answer to a command, or an event, which has a method.
type answer struct {
	ID             int
	Method         string
	Params, Result json.RawMessage
	Error          *struct{ Message string }
}

func (b *browser) read() (a answer, err error) {
	text, err := b.out.ReadBytes(0)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text[:len(text)-1], &a); err != nil {
		return a, err
	}
	b.loaded = b.loaded || a.Method == "Page.loadEventFired"
	b.note(a.Method, string(a.Params))
	return a, nil
}

// note keeps an event that a sound page does not cause: a message, an error, a request.
func (b *browser) note(method, params string) {
	switch method {
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
		b.errors = append(b.errors, params)
	case "Network.requestWillBeSent":
		if strings.Contains(params, `"url":"http`) {
			b.errors = append(b.errors, params)
		}
	}
}

// run evaluates an expression in the page, waits for it where it is a promise, and reads its value.
func (b *browser) run(expression string, result any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s\n%s", expression, answer.ExceptionDetails)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(answer.Result.Value, result); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// open loads a report and waits until it is shown.
func (b *browser) open(page string) {
	b.t.Helper()
	path := must.Get(filepath.Abs(page))(b.t)
	b.loaded = false
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for !b.loaded {
		must.Get(b.read())(b.t)
	}
	b.run(`new Promise((shown) => {
		const root = document.documentElement;
		const look = () => root.dataset.ready === "yes" && shown();
		new MutationObserver(look).observe(root, { attributes: true });
		look();
	})`, nil)
	b.run(`globalThis.frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		globalThis.rows = (id) => [...document.querySelectorAll("#" + id + " tbody tr")].map((tr) => [...tr.children].map((td) => td.textContent));
		globalThis.contrast = (...colours) => {
			const luminance = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
				.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
			const [a, b] = colours.map(luminance).sort((x, y) => y - x);
			return (a + 0.05) / (b + 0.05);
		};
		globalThis.text = (selector) => document.querySelector(selector)?.textContent ?? "";
		frame()`, nil)
}

// mouse does something at a point of an element.
func (b *browser) mouse(selector string, x, y float64, kinds ...string) {
	b.t.Helper()
	var box struct{ X, Y float64 }
	b.run(`(() => { const e = document.querySelector("`+selector+`"); e.scrollIntoView(); const r = e.getBoundingClientRect(); return { x: r.x, y: r.y }; })()`, &box)
	for _, kind := range kinds {
		event := map[string]any{"type": kind, "x": box.X + x, "y": box.Y + y}
		switch kind {
		case "mouseWheel":
			event["deltaX"], event["deltaY"] = 0, -200
		case "mousePressed", "mouseReleased":
			event["button"], event["clickCount"] = "left", 1
		}
		b.call("Input.dispatchMouseEvent", event, nil)
	}
	b.run("frame()", nil)
}

// press presses a key on an element.
func (b *browser) press(selector, key string) {
	b.t.Helper()
	b.run(`document.querySelector("`+selector+`").focus()`, nil)
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key}, nil)
	}
	b.run("frame()", nil)
}

func (b *browser) text(selector string) (text string) {
	b.t.Helper()
	b.run(`text("`+selector+`")`, &text)
	return text
}

func (b *browser) rows(table string) (rows [][]string) {
	b.t.Helper()
	b.run(`rows("`+table+`")`, &rows)
	return rows
}
