// SPDX-License-Identifier: Apache-2.0

// Package outside connects managed resources with the services outside the cluster that they are about: it finds the config that
// a managed resource names, keeps tenants to their own ground, pools connections, and turns what goes wrong into conditions.
//
// It knows nothing of the protocol of any service. Those who do (the packages s3 and mlflow) make their clients from a
// Connection.
package outside
