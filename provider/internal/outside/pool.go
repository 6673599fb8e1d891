// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const (
	// trusted is how long Secrets are taken for unchanged. A rotation takes effect within this time, and a thousand managed
	// resources that are reconciled in one second read it once.
	trusted = 5 * time.Second

	// forgotten is when an unused client is dropped, for instance because its config is gone.
	forgotten = time.Hour
)

// A Pool keeps one client for each config, as long as the config and its Secrets stay the same.
type Pool[C any] struct {
	resolver *Resolver
	backend  Backend
	service  Service[C]

	mu      sync.Mutex
	entries map[types.UID]*entry[C]
}

type entry[C any] struct {
	// mu is held while the client is made: only others of the same config wait for it.
	mu sync.Mutex

	client     C
	connection *Connection
	config     string
	secrets    string

	checked, used time.Time
}

// A Service is what a pool has to know of the services that its clients C talk to.
type Service[C any] struct {
	// New makes a client of a Connection. It sends nothing.
	New func(*Connection) (C, error)

	// Ask something that changes nothing and that everybody may ask whose credentials the service knows.
	Ask func(context.Context, C) error

	// Explain an error of New, Ask or a client, or return nil when only what lies below the service's protocol went wrong.
	Explain func(error) *Failure
}

// NewPool of clients for a backend.
func NewPool[C any](r *Resolver, b Backend, s Service[C]) *Pool[C] {
	return &Pool[C]{resolver: r, backend: b, service: s, entries: map[types.UID]*entry[C]{}}
}

// Client for mg, and on whose behalf it acts. It records that mg uses its config. Errors are Failures, or come from the API
// server.
func (p *Pool[C]) Client(ctx context.Context, mg resource.ModernManaged) (C, Tenant, error) {
	var none C
	c, err := p.resolver.resolve(ctx, mg, p.backend)
	if err != nil {
		return none, Tenant{}, err
	}
	t, err := p.resolver.tenant(ctx, c, mg.GetNamespace())
	if err != nil {
		return none, Tenant{}, err
	}
	// What is deleted is used by no client any more.
	if !meta.WasDeleted(mg) {
		if t.Workload, err = p.resolver.workload(ctx, c, mg.GetNamespace()); err != nil {
			return none, Tenant{}, err
		}
	}
	cl, err := p.client(ctx, c)
	return cl, t, err
}

func (p *Pool[C]) client(ctx context.Context, c *config) (C, error) {
	e := p.entry(c.object.GetUID())
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.connection != nil && e.config == c.version() && time.Since(e.checked) < trusted {
		return e.client, nil
	}
	var none C
	n, secrets, err := p.resolver.connection(ctx, c)
	if err != nil {
		return none, err
	}
	if e.connection != nil && e.config == c.version() && e.secrets == secrets {
		e.checked = time.Now()
		return e.client, nil
	}
	if n.HTTP, err = newHTTPClient(n, p.resolver.guard); err != nil {
		return none, &Failure{
			Reason:  v1alpha1.ReasonInvalidConfig,
			Message: c.name() + ": " + err.Error(),
			Remedy:  "put certificates in PEM into caBundle, or leave it out",
			Cause:   err,
		}
	}
	made, err := p.service.New(n)
	if err != nil {
		return none, err
	}
	if e.connection != nil {
		e.connection.HTTP.CloseIdleConnections()
	}
	e.client, e.connection, e.config, e.secrets, e.checked = made, n, c.version(), secrets, time.Now()
	return made, nil
}

// entry of a config. It also drops the entries that were not used for a long time.
func (p *Pool[C]) entry(uid types.UID) *entry[C] {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, e := range p.entries {
		if id != uid && time.Since(e.used) > forgotten && e.mu.TryLock() {
			if e.connection != nil {
				e.connection.HTTP.CloseIdleConnections()
			}
			delete(p.entries, id)
			e.mu.Unlock()
		}
	}
	e := p.entries[uid]
	if e == nil {
		e = &entry[C]{}
		p.entries[uid] = e
	}
	e.used = time.Now()
	return e
}
