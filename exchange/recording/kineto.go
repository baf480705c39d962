package recording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"dahl/exchange/ranks"
)

// kinetoEvent is an entry of traceEvents. Numbers stay as they were written, since versions of PyTorch write some as texts.
type kinetoEvent struct {
	Phase    string          `json:"ph"`
	Category string          `json:"cat"`
	Name     string          `json:"name"`
	Process  json.RawMessage `json:"pid"`
	Thread   json.RawMessage `json:"tid"`
	Start    json.RawMessage `json:"ts"`
	Duration json.RawMessage `json:"dur"`
	ID       json.RawMessage `json:"id"`
	Args     kinetoArgs      `json:"args"`
}

type kinetoArgs struct {
	External    json.RawMessage `json:"External id"` // encoding/json ignores case
	Record      json.RawMessage `json:"Record function id"`
	Correlation json.RawMessage `json:"correlation"`
	Device      json.RawMessage `json:"device"`
	Stream      json.RawMessage `json:"stream"`
	Bytes       json.RawMessage `json:"bytes"`
	Dims        json.RawMessage `json:"Input Dims"`
	Types       json.RawMessage `json:"Input type"`
	Values      json.RawMessage `json:"Concrete Inputs"`
	Collective  json.RawMessage `json:"Collective name"`
	In          json.RawMessage `json:"In msg nelems"`
	Out         json.RawMessage `json:"Out msg nelems"`
	ElementType json.RawMessage `json:"dtype"`
	Group       json.RawMessage `json:"Process Group Name"`
	GroupSize   json.RawMessage `json:"Group size"`
	Members     json.RawMessage `json:"Process Group Ranks"`
	From        json.RawMessage `json:"Src Rank"`
	To          json.RawMessage `json:"Dst Rank"`
}

// exchange reads what an operator or a kernel says of an exchange with other ranks.
func (a *kinetoArgs) exchange() *ranks.Exchange {
	x := &ranks.Exchange{Kind: text(a.Collective), Group: text(a.Group), Ranks: int(whole(a.GroupSize)), Bytes: whole(a.In) * elementBytes(text(a.ElementType))}
	_ = json.Unmarshal([]byte(text(a.Members)), &x.Members) // a long list is cut short, and names nobody then
	x.Peer = int(max(whole(a.From), whole(a.To)))           // of a message, one of them is given
	return x
}

// categories are the categories of events to take, in the words of new and old versions of PyTorch.
var categories = map[string]category{
	"cpu_op": operator, "operator": operator,
	"cuda_runtime": call, "cuda_driver": call, "runtime": call, "driver": call, "hip_runtime": call, "xpu_runtime": call, "xpu_driver": call, "mtia_runtime": call, "privateuse1_runtime": call, "privateuse1_driver": call,
	"user_annotation": annotation,
	"kernel":          kernel, "gpu_memcpy": copyWork, "memcpy": copyWork, "gpu_memset": setWork, "memset": setWork,
}

// elsewhere are categories that repeat other events, or are about the recording.
var elsewhere = map[string]bool{"gpu_user_annotation": true, "trace": true, "ac2g": true, "fwdbwd": true, "async_cpu_to_gpu": true, "async_gpu": true, "": true}

const (
	stepPrefix   = "ProfilerStep#"
	updatePrefix = "Optimizer.step#"
)

// kinetoReader fills a recording.
type kinetoReader struct {
	*recording
	dec      *json.Decoder
	in       *entryReader
	threadAt map[string]int32
	streamAt map[string]int32
	names    map[string]string    // one copy of each
	operands map[string]*operands // likewise
	flows    map[string]int       // begun and not yet ended, by category and id
}

// newRecording is one without events.
func newRecording(f File, p *part) *recording {
	return &recording{file: f.Name, room: f.Room, rank: -1, left: counts{}, span: span{math.MaxInt64, math.MinInt64}, part: p}
}

// readKineto reads a part of a file of PyTorch's profiler. It holds one entry of the file at a time, and what the part keeps.
func readKineto(f File, p *part) (*recording, error) {
	in := newEntryReader(f.In)
	r := &kinetoReader{
		recording: newRecording(f, p),
		dec:       json.NewDecoder(in), in: in,
		threadAt: map[string]int32{}, streamAt: map[string]int32{}, names: map[string]string{}, operands: map[string]*operands{}, flows: map[string]int{},
	}
	if err := r.document(); err != nil {
		return nil, streamError(f.Name, r.dec, err)
	}
	if r.start > r.end {
		return nil, fmt.Errorf("%s: no operator, no call of a GPU's runtime and no work of a GPU is in it; record with torch.profiler", f.Name)
	}
	for _, open := range r.flows {
		if open > 0 {
			r.left["arrows without an end"]++
		}
	}
	r.settle()
	return r.recording, nil
}

// streamError says where in a file an error is.
func streamError(file string, dec *json.Decoder, err error) error {
	at := dec.InputOffset()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: the file ends in the middle, after %d bytes; it was cut off", file, at)
	}
	syntax := (*json.SyntaxError)(nil)
	if errors.As(err, &syntax) {
		return fmt.Errorf("%s: not JSON: at byte %d: %w", file, at, err)
	}
	return fmt.Errorf("%s: at byte %d: %w", file, at, err)
}

// begin reads the beginning of an object or a list.
func begin(dec *json.Decoder, want json.Delim, otherwise string) error {
	first, err := dec.Token()
	if err == nil && first != want {
		err = fmt.Errorf(otherwise, shown(first))
	}
	return err
}

// shown is a token in one line.
func shown(token json.Token) json.Token {
	if text, ok := token.(string); ok {
		return strconv.Quote(text)
	}
	return token
}

// inside reads the rest of an object or a list, part by part.
func inside(dec *json.Decoder, part func() error) error {
	for dec.More() {
		if err := part(); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

// members reads the rest of an object. The function value reads what stands behind a key.
func members(dec *json.Decoder, value func(key string) error) error {
	return inside(dec, func() error {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		return value(key.(string))
	})
}

// document reads an object with traceEvents, or a list of events alone.
func (r *kinetoReader) document() error {
	first, err := r.dec.Token()
	if err != nil {
		return err
	}
	if first == json.Delim('[') {
		return r.events()
	}
	if first != json.Delim('{') {
		return fmt.Errorf("it begins with %v; want an object with traceEvents", shown(first))
	}
	return members(r.dec, r.member)
}

// member reads what stands behind a key of the document.
func (r *kinetoReader) member(key string) error {
	switch key {
	case "traceEvents":
		if err := begin(r.dec, '[', "traceEvents is %v; want a list"); err != nil {
			return err
		}
		return r.events()
	case "deviceProperties", "computeProperties": // the latter before version 1.9 of PyTorch
		return notType(r.dec.Decode(&r.gpus))
	case "distributedInfo":
		info := struct {
			Rank  *int `json:"rank"`
			World int  `json:"world_size"`
		}{}
		err := notType(r.dec.Decode(&info))
		if info.Rank != nil {
			r.rank, r.world = *info.Rank, info.World
		}
		return err
	}
	var skipped json.RawMessage
	return r.dec.Decode(&skipped)
}

// notType drops the error about a value of another type. All the rest of the value was read.
func notType(err error) error {
	if other := (*json.UnmarshalTypeError)(nil); errors.As(err, &other) {
		return nil
	}
	return err
}

func (r *kinetoReader) events() error {
	return inside(r.dec, func() error {
		var e kinetoEvent
		from := r.dec.InputOffset()
		err := r.dec.Decode(&e)
		r.in.next()
		r.entry = r.dec.InputOffset() - from
		if err != nil {
			if notType(err) == nil {
				r.left["entries of another form"]++
			}
			return notType(err)
		}
		named := len(r.flows) + len(r.left)
		err = r.event(&e)
		if len(r.flows)+len(r.left) > named {
			r.keep(nameBytes + r.entry)
		}
		return cmp.Or(err, r.room.check())
	})
}

// event takes an entry of the file.
func (r *kinetoReader) event(e *kinetoEvent) error {
	switch e.Phase {
	case "s":
		r.flow(e, 1)
		return nil
	case "f":
		r.flow(e, -1)
		return nil
	case "X":
	case "i", "M", "I":
		return nil
	default:
		r.left["entries of phase "+strconv.Quote(e.Phase)]++
		return nil
	}
	word := strings.ToLower(e.Category)
	cat, taken := categories[word]
	if !taken && word != "python_function" {
		if !elsewhere[word] {
			r.left["events of category "+e.Category]++
		}
		return nil
	}
	start, err := nanoseconds(e.Start)
	if err != nil {
		return fmt.Errorf("event %q: ts is %s; %w", e.Name, e.Start, err)
	}
	took, err := nanoseconds(e.Duration)
	if err != nil || took < 0 {
		return fmt.Errorf("event %q: dur is %s; a clock ran backwards, or the file is damaged: want microseconds, at least 0", e.Name, e.Duration)
	}
	if strings.HasPrefix(e.Name, stepPrefix) && cat == operator {
		cat = annotation
	}
	at := span{start, start + took}
	if word == "python_function" {
		if !r.part.survey && at.start < r.part.end && at.end > r.part.start {
			t := r.thread(e)
			t.python = append(t.python, at)
			r.keep(launchBytes)
		}
		return nil
	}
	moved := whole(e.Args.Bytes)
	if moved < 0 {
		return fmt.Errorf("event %q: bytes is %d; the file is damaged: want at least 0", e.Name, moved)
	}
	if err := checkGroup(whole(e.Args.GroupSize)); err != nil {
		return fmt.Errorf("event %q: Group size is %w", e.Name, err)
	}
	r.take(e, event{span: at, cat: cat, name: e.Name, link: whole(e.Args.Correlation), external: whole(e.Args.External), record: whole(e.Args.Record), bytes: moved})
	return nil
}

// flow counts the beginning or the end of an arrow, if all of the file is kept: an end may stand before its beginning, and far from it.
func (r *kinetoReader) flow(e *kinetoEvent, by int) {
	if r.part.survey || r.part.steps != nil {
		return
	}
	id := e.Category + string(e.ID)
	if r.flows[id] += by; r.flows[id] == 0 {
		delete(r.flows, id)
	}
}

// take adds an event to its thread or stream.
func (r *kinetoReader) take(e *kinetoEvent, ev event) {
	if !r.wants(&ev) {
		return
	}
	ev.name = r.one(ev.name)
	if e.Args.Collective != nil {
		ev.exchange = e.Args.exchange()
	}
	if ev.cat >= kernel {
		s := r.stream(e)
		s.events = append(s.events, ev)
		return
	}
	if e.Args.Dims != nil {
		ev.args = r.arguments(e)
	}
	t := r.thread(e)
	t.events = append(t.events, ev)
}

// one gives the same copy of equal texts.
func (r *kinetoReader) one(s string) string {
	if _, ok := r.names[s]; !ok {
		s = strings.Clone(s)
		r.names[s] = s
	}
	return r.names[s]
}

func (r *kinetoReader) thread(e *kinetoEvent) *thread {
	key := string(e.Process) + " " + string(e.Thread)
	at, ok := r.threadAt[key]
	if !ok {
		at = int32(len(r.threads))
		r.threadAt[key] = at
		r.threads = append(r.threads, thread{process: text(e.Process), id: text(e.Thread)})
	}
	return &r.threads[at]
}

func (r *kinetoReader) stream(e *kinetoEvent) *stream {
	device, queue := e.Args.Device, e.Args.Stream
	if device == nil {
		device = e.Process
	}
	if queue == nil {
		queue = e.Thread
	}
	key := string(device) + " " + string(queue)
	at, ok := r.streamAt[key]
	if !ok {
		at = int32(len(r.streams))
		r.streamAt[key] = at
		r.streams = append(r.streams, stream{device: int(whole(device)), id: text(queue)})
	}
	return &r.streams[at]
}

// arguments gives the same operands for equal texts, so that each is parsed once.
func (r *kinetoReader) arguments(e *kinetoEvent) *operands {
	key := string(slices.Concat(e.Args.Dims, e.Args.Types, e.Args.Values))
	a, ok := r.operands[key]
	if !ok {
		a = kinetoOperands(&e.Args)
		r.operands[key] = a
	}
	return a
}

// kinetoOperands reads shapes, types and numbers of an operator's inputs.
func kinetoOperands(args *kinetoArgs) *operands {
	var dims, types, values []json.RawMessage
	_ = json.Unmarshal(args.Dims, &dims) // what is not a list names no operand
	_ = json.Unmarshal(args.Types, &types)
	_ = json.Unmarshal(args.Values, &values)
	a := &operands{inputs: make([]operand, len(dims))}
	for i := range dims {
		in := &a.inputs[i]
		if i < len(types) {
			in.kind = text(types[i])
		}
		if i < len(values) {
			in.value = text(values[i])
		}
		in.shapes = shapesOf(dims[i])
	}
	return a
}

// shapesOf reads the shape of a tensor, or the shapes of a list of tensors.
func shapesOf(raw json.RawMessage) [][]int64 {
	var one []int64
	if json.Unmarshal(raw, &one) == nil {
		return [][]int64{one}
	}
	var several [][]int64
	if json.Unmarshal(raw, &several) != nil {
		return nil
	}
	return several
}

// text is a value without its quotes.
func text(raw json.RawMessage) string {
	s := string(raw)
	if strings.HasPrefix(s, `"`) && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return s
}

// whole is an integer, also between quotes; 0 for anything else.
func whole(raw json.RawMessage) int64 {
	n, err := strconv.ParseInt(text(raw), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// maxTime bounds times, so that differences of two fit.
const maxTime = 1 << 61

// nanoseconds reads microseconds with a fraction, exactly: a float64 would round today's times to a quarter of a microsecond.
func nanoseconds(raw json.RawMessage) (int64, error) {
	us, fraction, _ := strings.Cut(text(raw), ".")
	digits := (fraction + "000")[:3]
	n, err := strconv.ParseInt(us, 10, 64)
	f, errFraction := strconv.ParseUint(digits, 10, 16)
	if err != nil || errFraction != nil || strings.ContainsAny(fraction, "eE") || n > maxTime/1000 || n < -maxTime/1000 {
		v, err := strconv.ParseFloat(text(raw), 64)
		if err != nil || !(math.Abs(v) < maxTime/1000) {
			return 0, errors.New("want microseconds")
		}
		return int64(math.Round(v * 1000)), nil
	}
	if strings.HasPrefix(us, "-") {
		return n*1000 - int64(f), nil
	}
	return n*1000 + int64(f), nil
}
