package trace
import ("testing";"os";"compress/gzip";"fmt";"time")
func TestX(t *testing.T) {
	for _, n := range []string{"resnet_kineto","mi300_resnet_act_checkpoint"} {
		f,_:=os.Open("/work/shared/data/traces/"+n+".json.gz")
		z,_:=gzip.NewReader(f)
		t0:=time.Now()
		r,err:=readKineto(z,n)
		if err!=nil {t.Fatal(err)}
		fmt.Println(n,time.Since(t0),r.left,len(r.threads),len(r.streams),len(r.steps),r.end-r.start)
		tl:=newTimeline(r)
		ops:=map[string]int64{}; cnt:=map[string]int{}
		var gaps int64
		for _,k:=range tl.tasks { if k.thread>=0 {o:=k.op; if k.event!=nil{o="op"};ops[fmt.Sprint(o,k.thread)]+=k.end-k.start;cnt[fmt.Sprint(o,k.thread)]++} else {gaps+=k.gap;ops["gpu"]+=k.end-k.start;cnt["gpu"]++}}
		fmt.Println(ops,cnt,"gaps",gaps)
		g,err:=tl.graph(n,-1)
		if err!=nil {t.Fatal(err)}
		p,err:=tl.machine(n)
		if err!=nil {t.Fatal(err)}
		w,_:=os.Create("/tmp/tr/"+n+".json"); g.WriteJSON(w); w.Close()
		w,_=os.Create("/tmp/tr/"+n+".toml"); p.WriteTOML(w); w.Close()
	}
}
func TestY(t *testing.T) {
	for _, n := range []string{"resnet_kineto","mi300_resnet_act_checkpoint"} {
		f,_:=os.Open("/work/shared/data/traces/"+n+".json.gz")
		z,_:=gzip.NewReader(f)
		r,err:=readKineto(z,n)
		if err!=nil {t.Fatal(err)}
		tl:=newTimeline(r)
		for _,s:=range tl.reports() { d:=float64(s.end-s.start); fmt.Printf("%s %.1f ms host %.1f  unexpl %.1f%% onpath %.1f%% gap %.1f%%\n",s.name,d/1e6,0.,100*float64(s.unexplained)/d,100*float64(s.onPath)/d,100*float64(s.gapOnPath)/d)}
	}
}
func TestZ(t *testing.T) {
		n:="resnet_kineto"
		f,_:=os.Open("/work/shared/data/traces/"+n+".json.gz")
		z,_:=gzip.NewReader(f)
		r,_:=readKineto(z,n)
		tl:=newTimeline(r)
		bad:=0
		for i,k:=range tl.tasks { for _,p:=range k.after { q:=tl.tasks[p]; if q.end>k.start { bad++; if bad<10 {fmt.Println(i,k.op,k.start-r.start,k.end-r.start,k.thread,k.stream,"after",p,q.op,q.start-r.start,q.end-r.start,q.thread,q.stream)} } } }
		fmt.Println("bad",bad)
}
