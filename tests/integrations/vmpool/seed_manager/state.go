package main

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// poolState is the text under the key "allocation-state". The order of the fields is part of the layout.
type poolState struct {
	Allocated map[string]entry `json:"allocatedIPs"`
	Available []string         `json:"availableIPs"`
	Updated   metav1.Time      `json:"lastUpdated"`
	Version   int64            `json:"version"`
}

// entry is one allocation. Managers of today have lost podNamespace, so they drop it from entries of others, too.
type entry struct {
	ID           string      `json:"allocationID"`
	IP           string      `json:"ip"`
	Node         string      `json:"nodeName"`
	Pod          string      `json:"podName"`
	PodNamespace *string     `json:"podNamespace,omitempty"`
	At           metav1.Time `json:"allocatedAt"`
}

func newState(pool []string) *poolState {
	return &poolState{map[string]entry{}, slices.Clone(pool), metav1.Now(), 1}
}

func readState(text string) (*poolState, error) {
	var state poolState
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return nil, err
	}
	if state.Allocated == nil {
		state.Allocated = map[string]entry{}
	}
	return &state, nil
}

// written returns the text of a state as it is stored: two spaces of indent, no newline at the end.
func (state *poolState) written() (string, error) {
	text, err := json.MarshalIndent(state, "", "  ")
	return string(text), err
}

// pick returns the place of the address that an id gets.
func pick(free int, id string) int {
	if free <= 1 {
		return 0
	}
	digest := md5.Sum([]byte(id))
	return int(binary.BigEndian.Uint32(digest[:4]) % uint32(free))
}

func (state *poolState) take(id, node, pod, podNamespace string, hasNamespace bool) entry {
	place := pick(len(state.Available), id)
	taken := entry{ID: id, IP: state.Available[place], Node: node, Pod: pod, At: metav1.NewTime(time.Now().UTC())}
	if hasNamespace {
		taken.PodNamespace = &podNamespace
	}
	state.Available = slices.Delete(state.Available, place, place+1)
	state.Allocated[id] = taken
	state.touch()
	return taken
}

func (state *poolState) giveBack(id string) {
	state.Available = append(state.Available, state.Allocated[id].IP)
	delete(state.Allocated, id)
	state.touch()
}

func (state *poolState) touch() {
	state.Updated = metav1.NewTime(time.Now().UTC())
	state.Version++
}

// repair makes a state fit the pool, as a manager does when it starts, and says whether anything was wrong: every address
// of the pool that no entry has is available once. Entries of addresses outside the pool go, or are kept.
func (state *poolState) repair(pool []string, keepOutside bool) bool {
	changed := false
	used := map[string]bool{}
	for id, each := range state.Allocated {
		if !keepOutside && !slices.Contains(pool, each.IP) {
			delete(state.Allocated, id)
			changed = true
			continue
		}
		used[each.IP] = true
	}
	kept := []string{}
	listed := map[string]bool{}
	for _, ip := range state.Available {
		if used[ip] || listed[ip] || !slices.Contains(pool, ip) {
			changed = true
			continue
		}
		listed[ip] = true
		kept = append(kept, ip)
	}
	for _, ip := range pool {
		if !used[ip] && !listed[ip] {
			changed = true
			kept = append(kept, ip)
		}
	}
	state.Available = kept
	return changed
}
