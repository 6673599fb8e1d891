// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/provider/internal/signals"
)

// An observer looks at what members keep in the API server.
type observer struct {
	// kube writes, and reads Topologies from a cache.
	kube client.Client

	// seen holds what Setup watches.
	seen client.Reader

	// direct reads from the API server.
	direct client.Reader

	now    func() time.Time
	memory *memory
	counts *counts
	gather *gathering
	board  *signals.Board

	// again has a Topology looked at after a time.
	again func(types.NamespacedName, time.Duration)
}
