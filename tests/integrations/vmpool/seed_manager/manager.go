package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const stateKey = "allocation-state"

var (
	errExhausted = errors.New("no available IPs in pool")
	errChanged   = apierrors.NewConflict(corev1.Resource("configmaps"), "", errors.New("the state has changed since it was read"))
)

// manager allocates from one pool for one node. With overwrite it is a manager of today: the text is made once and then
// written over whatever is newest. Without, it is one of the time of the design: the version that was read must still hold.
type manager struct {
	store     *configMaps
	name      string
	node      string
	pool      []string
	timeout   time.Duration
	pause     time.Duration
	overwrite bool
	attempts  int
}

func (m *manager) allocate(id, pod, podNamespace string) (ip string, err error) {
	err = m.decided(func(ctx context.Context) error {
		state, version, err := m.read(ctx)
		if err != nil {
			return err
		}
		if there, ok := state.Allocated[id]; ok {
			ip = there.IP
			return nil
		}
		if len(state.Available) == 0 {
			return errExhausted
		}
		taken := state.take(id, m.node, pod, podNamespace, !m.overwrite)
		// Managers of today ask the VM whether it is ready, between their read and their write.
		time.Sleep(m.pause)
		if err := m.write(ctx, state, version); err != nil {
			return err
		}
		ip = taken.IP
		return nil
	})
	return ip, err
}

func (m *manager) deallocate(id string) error {
	return m.decided(func(ctx context.Context) error {
		state, version, err := m.read(ctx)
		if err != nil {
			return err
		}
		if _, ok := state.Allocated[id]; !ok {
			return nil
		}
		state.giveBack(id)
		return m.write(ctx, state, version)
	})
}

// start does what a manager does when its process starts: an old one releases what its node had, and both repair. Here
// it is one write; theirs are two.
func (m *manager) start() error {
	return m.decided(func(ctx context.Context) error {
		state, version, err := m.read(ctx)
		if err != nil {
			return err
		}
		changed := false
		for id, each := range state.Allocated {
			if each.Node == m.node && !m.overwrite {
				state.giveBack(id)
				changed = true
			}
		}
		if !state.repair(m.pool, m.overwrite) && !changed {
			return nil
		}
		state.touch()
		return m.write(ctx, state, version)
	})
}

// decided runs read, decision and write within the time-out; again on a conflict, where the manager is an old one.
func (m *manager) decided(once func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), m.timeout)
	defer cancel()
	m.attempts = 0
	if m.overwrite {
		return once(ctx)
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		m.attempts++
		return once(ctx)
	})
}

func (m *manager) read(ctx context.Context) (*poolState, string, error) {
	found, err := m.store.get(ctx, m.name)
	if apierrors.IsNotFound(err) {
		return newState(m.pool), "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("failed to retrieve pool state: %w", err)
	}
	text, ok := found.Data[stateKey]
	if !ok {
		return newState(m.pool), found.ResourceVersion, nil
	}
	state, err := readState(text)
	if err != nil {
		return nil, "", fmt.Errorf("failed to retrieve pool state: %w", err)
	}
	if m.overwrite {
		for id, each := range state.Allocated {
			each.PodNamespace = nil
			state.Allocated[id] = each
		}
	}
	return state, found.ResourceVersion, nil
}

func (m *manager) write(ctx context.Context, state *poolState, read string) error {
	text, err := state.written()
	if err != nil {
		return err
	}
	if !m.overwrite {
		return m.put(ctx, text, read)
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		m.attempts++
		return m.put(ctx, text, "")
	})
}

// put reads the newest object and puts the text into it. An empty version switches the comparison off.
func (m *manager) put(ctx context.Context, text, read string) error {
	newest, err := m.store.get(ctx, m.name)
	if apierrors.IsNotFound(err) {
		return m.store.create(ctx, m.fresh(text))
	}
	if err != nil {
		return err
	}
	if read != "" && newest.ResourceVersion != read {
		return errChanged
	}
	if newest.Data == nil {
		newest.Data = map[string]string{}
	}
	newest.Data[stateKey] = text
	return m.store.update(ctx, newest)
}

func (m *manager) fresh(text string) *corev1.ConfigMap {
	component := "byom-ip-pool"
	if m.overwrite {
		component = "byom-ip-pool-state"
	}
	labels := map[string]string{
		"app.kubernetes.io/name":      "cloud-api-adaptor",
		"app.kubernetes.io/component": component,
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Namespace: m.store.namespace, Labels: labels},
		Data:       map[string]string{stateKey: text},
	}
}
