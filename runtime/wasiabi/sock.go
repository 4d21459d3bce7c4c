package wasiabi

// sockFunctions exist for guests that link them. There are no sockets: requests
// leave a sandbox by other means.
func sockFunctions() []Function {
	return []Function{
		define("sock_accept", "fd flags opened", noSocket),
		define("sock_recv", "fd ri_data ri_data_len ri_flags ro_datalen ro_flags", noSocket),
		define("sock_send", "fd si_data si_data_len si_flags so_datalen", noSocket),
		define("sock_shutdown", "fd how", noSocket),
	}
}

func noSocket(s *System, _ memory, a args) Errno {
	if _, e := s.get(a.u32(0), 0); e != OK {
		return e
	}
	return ENOTSOCK
}
