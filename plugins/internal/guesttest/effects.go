package guesttest

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tetratelabs/wazero/api"
)

// defineEffects defines the calls for keys, values and jobs. Each key that is
// there has version 1.
func defineEffects(define func(name string, params, results []api.ValueType, call hostCall)) {
	type types = []api.ValueType
	define("submit", types{i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		s[0] = api.EncodeI32(at.newJob(fmt.Sprint(int32(s[2]), " ", text(m, s[0], s[1]))))
	})
	define("kv_get", types{i32, i32, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		value, there := at.Keys[text(m, s[0], s[1])]
		if s[0] = fill(m, s[2], s[3], value); !there {
			s[0] = api.EncodeI32(at.missing())
		}
	})
	define("kv_version", types{i32, i32}, types{i64}, func(at *Attempt, m api.Memory, s []uint64) {
		_, there := at.Keys[text(m, s[0], s[1])]
		if s[0] = 0; there {
			s[0] = 1
		}
	})
	define("kv_set", types{i32, i32, i32, i32, i64}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		s[0] = at.set(text(m, s[0], s[1]), text(m, s[2], s[3]))
	})
	define("kv_del", types{i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		delete(at.Keys, text(m, s[0], s[1]))
		s[0] = 0
	})
	define("kv_add", types{i32, i32, i64}, types{i64}, func(at *Attempt, m api.Memory, s []uint64) {
		key := text(m, s[0], s[1])
		n, err := strconv.ParseInt(at.Keys[key], 10, 64)
		if _, there := at.Keys[key]; there && err != nil {
			s[0] = api.EncodeI64(math.MinInt64 + 5)
			return
		}
		n += int64(s[2])
		at.set(key, strconv.FormatInt(n, 10))
		s[0] = api.EncodeI64(n)
	})
	define("kv_cas", types{i32, i32, i64, i32, i32}, types{i32}, func(at *Attempt, m api.Memory, s []uint64) {
		key := text(m, s[0], s[1])
		if _, there := at.Keys[key]; there != (s[2] == 1) {
			s[0] = api.EncodeI32(-8)
			return
		}
		s[0] = at.set(key, text(m, s[3], s[4]))
	})
}

// newJob gives a job, or a request that is one, a number and an id.
func (at *Attempt) newJob(what string) (number int32) {
	at.Jobs = append(at.Jobs, what)
	if at.Info == nil {
		at.Info = map[string]string{}
	}
	at.Info[fmt.Sprint("child.", len(at.Jobs))] = fmt.Sprint("id-", len(at.Jobs))
	return int32(len(at.Jobs))
}

// missing is the answer for a key that isn't there.
func (at *Attempt) missing() int32 {
	if at.Keys == nil {
		return -2
	}
	return -1
}

func (at *Attempt) set(key, value string) uint64 {
	if at.Keys == nil {
		return api.EncodeI32(-2)
	}
	at.Keys[key] = value
	return 0
}
