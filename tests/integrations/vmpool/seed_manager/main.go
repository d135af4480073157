// Command seed-manager is a manager of a VM pool on a ConfigMap, as two generations of Go managers behave that our
// users run. It is written from the description of their behaviour, for tests and measurements of ours beside them:
//
//	seed-manager --kubeconfig FILE --namespace NAME --pool A,B,... [--overwrite] run      COUNT allocations a node
//	                                                                            allocate ID...
//	                                                                            deallocate ID...
//	                                                                            start    what a node does at its start
//	                                                                            pick N ID...
//
// Each operation prints a line of JSON. Failed operations are lines, too; the exit code is 0. With -on-cue a last line
// says what it all took.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type line struct {
	Operation string  `json:"operation"`
	Node      string  `json:"node"`
	ID        string  `json:"id"`
	IP        string  `json:"ip"`
	Error     string  `json:"error"`
	Attempts  int     `json:"attempts"`
	Seconds   float64 `json:"seconds"`
}

type spent struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_s"`
	PeakMB  float64 `json:"peak_mb"`
}

type settings struct {
	kubeconfig, namespace, name, pool, node, prefix string
	podNamespace                                    string
	nodes, count, releaseEvery                      int
	timeout, pause                                  time.Duration
	overwrite, onCue                                bool
}

var printing sync.Mutex

func main() {
	var s settings
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "how to reach the cluster")
	flag.StringVar(&s.namespace, "namespace", "confidential-containers-system", "where the ConfigMap is")
	flag.StringVar(&s.name, "name", "byom-ip-pool-state", "the ConfigMap")
	flag.StringVar(&s.pool, "pool", "", "addresses, with commas between them")
	flag.StringVar(&s.node, "node", "go-node", "name of the node; with several nodes, they are numbered")
	flag.StringVar(&s.prefix, "prefix", "", "begin of the ids that run makes [default: the node]")
	flag.StringVar(&s.podNamespace, "pod-namespace", "default", "namespace of the pods")
	flag.IntVar(&s.nodes, "nodes", 1, "run: so many nodes at once, each with a manager and connections of its own")
	flag.IntVar(&s.count, "count", 1, "run: allocations of each node, one after the other")
	flag.IntVar(&s.releaseEvery, "release-every", 0, "run: release every so many-th allocation again")
	flag.DurationVar(&s.timeout, "timeout", 30*time.Second, "of each operation")
	flag.DurationVar(&s.pause, "pause", 0, "between the read and the write of an allocation")
	flag.BoolVar(&s.overwrite, "overwrite", false, "write over whatever is newest, as managers of today do")
	flag.BoolVar(&s.onCue, "on-cue", false, "print ready, and begin when a line comes on standard input")
	flag.Parse()
	if flag.Arg(0) == "pick" {
		printPicks(flag.Args()[1:])
		return
	}
	if err := serve(s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(s settings, words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("run, allocate, deallocate, start or pick?")
	}
	managers := make([]*manager, s.nodes)
	for number := range managers {
		var err error
		if managers[number], err = open(s, number); err != nil {
			return err
		}
	}
	if !s.onCue {
		together(managers, func(each *manager) { work(each, s, words) })
		return nil
	}
	// Connections are there before the cue, as those of a manager that runs for days.
	together(managers, func(each *manager) { each.store.get(context.Background(), each.name) })
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	began, before := time.Now(), usage()
	together(managers, func(each *manager) { work(each, s, words) })
	after := usage()
	text, _ := json.Marshal(spent{time.Since(began).Seconds(), cpu(after) - cpu(before), float64(after.Maxrss) / 1024})
	fmt.Println(string(text))
	return nil
}

func together(managers []*manager, do func(*manager)) {
	var running sync.WaitGroup
	for _, each := range managers {
		running.Go(func() { do(each) })
	}
	running.Wait()
}

func usage() syscall.Rusage {
	var found syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &found)
	return found
}

func cpu(usage syscall.Rusage) float64 {
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func open(s settings, number int) (*manager, error) {
	store, err := openConfigMaps(s.kubeconfig, s.namespace)
	if err != nil {
		return nil, err
	}
	node := s.node
	if s.nodes > 1 {
		node = fmt.Sprintf("%s-%d", node, number)
	}
	pool := strings.Split(s.pool, ",")
	return &manager{
		store: store, name: s.name, node: node, pool: pool, timeout: s.timeout, pause: s.pause, overwrite: s.overwrite,
	}, nil
}

func work(m *manager, s settings, words []string) {
	switch words[0] {
	case "start":
		report(m, "start", "", func() (string, error) { return "", m.start() })
	case "allocate":
		for _, id := range words[1:] {
			allocate(m, s, id)
		}
	case "deallocate":
		for _, id := range words[1:] {
			deallocate(m, id)
		}
	case "run":
		run(m, s)
	}
}

func run(m *manager, s settings) {
	prefix := s.prefix + m.node
	for number := range s.count {
		id := fmt.Sprintf("%s-pod-%d", prefix, number)
		allocate(m, s, id)
		if s.releaseEvery > 0 && (number+1)%s.releaseEvery == 0 {
			deallocate(m, id)
		}
	}
}

func allocate(m *manager, s settings, id string) {
	report(m, "allocate", id, func() (string, error) { return m.allocate(id, id, s.podNamespace) })
}

func deallocate(m *manager, id string) {
	report(m, "deallocate", id, func() (string, error) { return "", m.deallocate(id) })
}

func report(m *manager, operation, id string, do func() (string, error)) {
	began := time.Now()
	ip, err := do()
	done := line{operation, m.node, id, ip, "", m.attempts, time.Since(began).Seconds()}
	if err != nil {
		done.Error = err.Error()
	}
	text, _ := json.Marshal(done)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

func printPicks(words []string) {
	free, _ := strconv.Atoi(words[0])
	for _, id := range words[1:] {
		fmt.Println(pick(free, id))
	}
}
