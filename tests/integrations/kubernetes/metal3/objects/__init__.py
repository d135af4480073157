"""What users may write in Metal3's kinds, without a server and with one."""
