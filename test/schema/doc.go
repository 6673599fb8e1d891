// SPDX-License-Identifier: Apache-2.0

// Package schema proves, without a cluster, what the generated APIs promise: the API server accepts them, they refuse
// bad objects with messages that help, they agree with the Go types, and every field is explained.
package schema
