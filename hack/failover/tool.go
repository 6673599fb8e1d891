// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
)

var (
	//go:embed capstan.yaml
	capstanManifest string

	//go:embed cloudnative-pg.yaml
	cloudnativeManifest string

	//go:embed writer.yaml
	writerManifest string
)

// A tool runs the PostgreSQL "orders" with three members.
type tool struct {
	manifest string
	// members and leader are selectors of pods.
	members, leader string
	// container of the server in them, and data the folder of its data.
	container, data string
	// secret has the URI for the writers, and authority the certificate that they trust.
	secret, authority string
	// managers are the namespace of what manages PostgreSQL, and the Deployments there in the order in which they are stopped; empty is all others.
	managers string
	first    []string
}

func tools() map[string]tool {
	return map[string]tool{
		"capstan": {
			manifest: capstanManifest,
			members:  "capstan.dev/database=orders,capstan.dev/role", leader: "capstan.dev/database=orders,capstan.dev/role=leader",
			container: "postgres", data: "/data/pgdata",
			secret: "orders-writer", authority: "orders-writer",
			// While it ends, Crossplane starts others again.
			managers: "crossplane-system", first: []string{"crossplane", "crossplane-rbac-manager"},
		},
		"cloudnative-pg": {
			manifest: cloudnativeManifest,
			members:  "cnpg.io/cluster=orders,cnpg.io/podRole=instance", leader: "cnpg.io/cluster=orders,cnpg.io/instanceRole=primary",
			container: "postgres", data: "/var/lib/postgresql/data/pgdata",
			secret: "orders-app", authority: "orders-ca",
			managers: "cnpg-system",
		},
	}
}
