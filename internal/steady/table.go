// SPDX-License-Identifier: Apache-2.0

package steady

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/names"
)

// A ready kind: what its controller is taken to report once an object of it is made, and the assumption that this is.
type ready struct {
	// assumes is a sentence for people.
	assumes string
	// status of an object, or nil to leave it as it is.
	status func(w *World, resource string, o map[string]any) map[string]any
	// others reports that the status follows from other objects, so that it is found again after each pass. Otherwise it is found only for an
	// object that is new or has another spec: what exists stays as it was observed.
	others bool
}

// table of the kinds that planners wait for. A kind that is not here is ready by existing.
var table = map[string]ready{
	"Deployment":            {assumes: "Deployment: every pod starts, and answers its probes.", status: deployment},
	"StatefulSet":           {assumes: "StatefulSet: its pod is placed on a node, gets its volume, and starts.", status: statefulSet},
	"Job":                   {assumes: "Job: it succeeds.", status: job},
	"PersistentVolumeClaim": {assumes: "PersistentVolumeClaim: storage grants it.", status: bound},
	"HTTPRoute":             {assumes: "HTTPRoute: the Gateway exists and accepts it.", status: route},
	"GRPCRoute":             {assumes: "GRPCRoute: the Gateway exists and accepts it.", status: route},
	"Certificate":           {assumes: "Certificate: cert-manager issues it.", status: nothing},
	"Issuer":                {assumes: "Issuer: cert-manager accepts it.", status: nothing},
	"Credential":            {assumes: "Credential: the provider makes its Secret.", status: credential},
	"Access":                {assumes: "Access: the provider reaches the leader, and makes databases and logins.", status: access, others: true},
	"Bucket":                {assumes: "Bucket: the storage service makes it, and its Secret opens it.", status: nothing},
	"VolumeClaim":           {assumes: "VolumeClaim: storage grants every volume the requested size.", status: volumes},
	"Topology":              {assumes: "Topology: members find one another, the first one is the leader, the others follow without lag, and each is in a zone and on a node of its own.", status: topology, others: true},
	"Analysis":              {assumes: "Analysis: no pod has a problem. Evidence is not simulated: a rollout that needs some ends here where it waits for it.", status: nothing},
	"Autoscaler":            {assumes: "Autoscaler: it is applied, and asks for no other number of replicas.", status: nothing},
	"Hook":                  {assumes: "Hook: the provider knows it. It is not called.", status: nothing},
	"Lineage":               {assumes: "Lineage: the provider knows it. It sends nothing.", status: nothing},
	"ModelVersion":          {assumes: "ModelVersion: the registry has it, as version 1 where an alias is named. The model itself is not looked at.", status: model},
	"ModelAlias":            {assumes: "ModelAlias: the registry accepts it.", status: nothing},
	"Algorithm":             {assumes: "Algorithm: it becomes ready, as a plan of its own would show.", status: nothing},
	"Database":              {assumes: "Database: it becomes ready, as a plan of its own would show.", status: nothing},
}

// react to what is composed, and report whether anything is another than before. The generations are what the status of each object
// is about. Only some resources may react.
func react(w *World, generations map[string]float64, may func(resource string) bool) bool {
	changed := false
	for _, others := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(w.Objects)) {
			o := w.Objects[name]
			k, known := table[fmt.Sprint(o["kind"])]
			generation := number(at(o, "metadata", "generation"))
			if !known || !may(name) || k.others != others || !others && generations[name] == generation {
				continue
			}
			generations[name] = generation
			status := k.status(w, name, o)
			if status == nil || same(status, o["status"]) {
				continue
			}
			next := maps.Clone(o)
			next["status"] = copied(status)
			w.Objects[name] = next
			changed = true
		}
	}
	return changed
}

// assumptions about the kinds that are composed.
func assumptions(w World) []string {
	var all []string
	for _, o := range w.Objects {
		if k, ok := table[fmt.Sprint(o["kind"])]; ok {
			all = append(all, k.assumes)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// conditions of a managed resource that is made.
func conditions(o map[string]any) []any {
	all := make([]any, 0, 2)
	for _, t := range []string{"Ready", "Synced"} {
		all = append(all, map[string]any{"type": t, "status": "True", "reason": "Planned", "observedGeneration": at(o, "metadata", "generation")})
	}
	return all
}

// made is the status of a managed resource with what it reports.
func made(o, reports map[string]any) map[string]any {
	status := map[string]any{"conditions": conditions(o)}
	if reports != nil {
		status["atProvider"] = reports
	}
	return status
}

func nothing(_ *World, _ string, o map[string]any) map[string]any {
	reports, _ := at(o, "status", "atProvider").(map[string]any)
	return made(o, reports)
}

func deployment(_ *World, _ string, o map[string]any) map[string]any {
	size := 1.0
	if n := at(o, "spec", "replicas"); n != nil {
		size = number(n)
	}
	generation := at(o, "metadata", "generation")
	return map[string]any{
		"observedGeneration": generation, "replicas": size, "updatedReplicas": size, "readyReplicas": size, "availableReplicas": size,
	}
}

func statefulSet(_ *World, _ string, o map[string]any) map[string]any {
	status := deployment(nil, "", o)
	raw, _ := json.Marshal(at(o, "spec", "template")) //nolint:errchkjson // It was read from JSON.
	sum := sha256.Sum256(raw)
	status["updateRevision"] = hex.EncodeToString(sum[:5])
	status["currentRevision"] = status["updateRevision"]
	return status
}

func job(_ *World, _ string, _ map[string]any) map[string]any {
	return map[string]any{"succeeded": 1.0, "conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
}

func bound(_ *World, _ string, o map[string]any) map[string]any {
	return map[string]any{"phase": "Bound", "capacity": at(o, "spec", "resources", "requests")}
}

func route(_ *World, _ string, o map[string]any) map[string]any {
	refs, _ := at(o, "spec", "parentRefs").([]any)
	parents := make([]any, 0, len(refs))
	for _, ref := range refs {
		all := make([]any, 0, 2)
		for _, t := range []string{"Accepted", "ResolvedRefs"} {
			all = append(all, map[string]any{"type": t, "status": "True", "reason": t, "observedGeneration": at(o, "metadata", "generation")})
		}
		parents = append(parents, map[string]any{"parentRef": ref, "controllerName": "planned", "conditions": all})
	}
	return map[string]any{"parents": parents}
}

// identity of a Database that does not exist. A real one is random.
const identity = "00000000000000000000000000000000"

func credential(_ *World, _ string, o map[string]any) map[string]any {
	reports := map[string]any{"identity": identity}
	if was, ok := at(o, "status", "atProvider").(map[string]any); ok {
		reports = maps.Clone(was)
	}
	if text, ok := at(o, "spec", "forProvider", "remember").(string); ok && text != "" {
		reports["remembered"] = text
	}
	return made(o, reports)
}

// access has its logins once there is a leader.
func access(w *World, _ string, o map[string]any) map[string]any {
	if !slices.ContainsFunc(slices.Collect(maps.Values(w.Objects)), func(t map[string]any) bool {
		leader, _ := at(t, "status", "atProvider", "leader").(string)
		return t["kind"] == "Topology" && leader != ""
	}) {
		return nil
	}
	logins := []any{}
	all, _ := at(o, "spec", "forProvider", "logins").([]any)
	for _, l := range all {
		logins = append(logins, at(l, "name"))
	}
	return made(o, map[string]any{"logins": logins})
}

func model(_ *World, _ string, o map[string]any) map[string]any {
	asks, _ := at(o, "spec", "forProvider").(map[string]any)
	version := asks["version"]
	if version == nil {
		version = "1"
	}
	from := fmt.Sprintf("s3://models/%v/%v", asks["model"], version)
	return made(o, map[string]any{"model": asks["model"], "version": version, "status": "READY", "source": from, "artifactUri": from})
}

func volumes(_ *World, _ string, o map[string]any) map[string]any {
	size, _ := at(o, "spec", "forProvider", "size").(string)
	members, _ := at(o, "spec", "forProvider", "members").([]any)
	all := make([]any, 0, len(members))
	for _, m := range members {
		all = append(all, map[string]any{"name": fmt.Sprintf("data-%v-0", m), "member": m, "state": string(storagev1alpha1.VolumeReady), "granted": size})
	}
	return made(o, map[string]any{"state": string(storagev1alpha1.VolumeReady), "volumes": all})
}

// topology of the members of one generation of a Database.
func topology(w *World, resource string, o map[string]any) map[string]any {
	generation, _ := names.GenerationOf(resource)
	reports, _ := copied(at(o, "status", "atProvider")).(map[string]any)
	if reports == nil {
		reports = map[string]any{"zones": []any{"a", "b", "c"}, "nodes": 3.0}
	}
	was := map[string]map[string]any{}
	before, _ := reports["members"].([]any)
	for _, v := range before {
		m, _ := v.(map[string]any)
		was[fmt.Sprint(m["name"])] = m
	}
	leader, _ := reports["leader"].(string)
	version := at(w.XR, "spec", "version")
	var members, held []any
	leads := ""
	for _, name := range slices.Sorted(maps.Keys(w.Objects)) {
		s := w.Objects[name]
		if g, ok := names.GenerationOf(name); s["kind"] != names.KindStatefulSet || !ok || g != generation || name == names.Repository {
			continue
		}
		m := member(s, was[fmt.Sprint(at(s, "metadata", "name"))], version)
		if m["ready"] == true && (leads == "" || m["name"] == leader) {
			leads = fmt.Sprint(m["name"])
		}
		members, held = append(members, m), append(held, m["name"])
	}
	reports["phase"] = string(observev1alpha1.TopologyEmpty)
	if len(members) > 0 {
		reports["phase"] = string(observev1alpha1.TopologyNoLeader)
	}
	if leads != "" {
		reports["phase"] = string(observev1alpha1.TopologyRunning)
		if reports["systemIdentifier"] == nil {
			reports["systemIdentifier"] = "7000000000000000000"
		}
	}
	assign(members, leads)
	reports["members"], reports["volumes"] = members, held
	if leads != "" {
		reports["leader"] = leads
	} else {
		delete(reports, "leader")
	}
	return made(o, reports)
}

// assign roles: one is the leader, and the others follow without lag.
func assign(members []any, leads string) {
	for _, v := range members {
		m, _ := v.(map[string]any)
		switch {
		case m["ready"] != true:
		case m["name"] == leads:
			m["role"], m["state"] = string(observev1alpha1.RoleLeader), string(observev1alpha1.MemberRunning)
			delete(m, "lag")
		case m["role"] == nil || m["role"] == string(observev1alpha1.RoleLeader):
			m["role"], m["state"], m["lag"] = string(observev1alpha1.RoleSyncStandby), string(observev1alpha1.MemberStreaming), string(observev1alpha1.LagInSync)
		}
	}
}

// member of a StatefulSet, as it was seen before with its latest pod.
func member(s, was map[string]any, version any) map[string]any {
	m := maps.Clone(was)
	name := fmt.Sprint(at(s, "metadata", "name"))
	if m == nil {
		letter := name[len(name)-1:]
		m = map[string]any{"name": name, "node": "node-" + letter, "zone": letter, "disk": "Ok", "version": version}
		claims, _ := at(s, "spec", "volumeClaimTemplates").([]any)
		if len(claims) > 0 {
			m["volumeSize"] = at(claims[0], "spec", "resources", "requests", "storage")
		}
	}
	if number(at(s, "status", "readyReplicas")) == 0 {
		m["state"], m["ready"] = string(observev1alpha1.MemberStopped), false
		delete(m, "role")
		return m
	}
	m["revision"], m["ready"] = at(s, "status", "updateRevision"), true
	return m
}
